//! Bash: runs a command.

mod exit_code_one;
mod failed_pipe_parts;
mod finished;
mod network_hints;
mod other_jobs_note;
mod refused_contents;
mod report;
mod sandbox_hints;
mod wait;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_exec::Stdin;
use toolcrib_policy::Access;
use toolcrib_text::ExcerptOptions;

use self::finished::FinishedCommand;
use self::report::{KEEP_RUNNING_HINT, Report};
use self::wait::{WaitResult, wait};
use super::changed_files::CHANGED_FILES;
use super::limit_notes::LIMIT;
use crate::command_variables::{check_names, with_exports};
use crate::cx::{CommandRequest, Cx};
use crate::error::Error;
use crate::message_names::RUN_IN_BACKGROUND;
use crate::metadata_fields::MetadataField;
use crate::network::notes::HOSTS;
use crate::reply::Reply;
use crate::sandbox_refusal_notes::REFUSED;
use crate::sandbox_settings::SANDBOX;
use crate::tool::{Category, Hints, Tool};

/// Runs a bash command. Working directory and exports carry over. No terminal. A command that exceeds
/// `timeout` or leaves processes continues in the background: use its `bash_id` with `BashOutput` and `KillShell`.
/// `BashOutput` also shows omitted lines. A command sees only its own processes. /tmp is private to the session,
/// also for file tools. Notes are in brackets; output like a note gets a leading `\`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    /// Shell script.
    command: String,
    /// For the user.
    description: Option<String>,
    /// In ms, up to 600000.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1_000, max = 600_000))]
    timeout: u64,
    /// Return at once.
    #[serde(default)]
    run_in_background: bool,
    /// Working directory.
    cwd: Option<String>,
    /// For this command.
    env: Option<BTreeMap<String, String>>,
    /// Standard input.
    stdin: Option<String>,
    /// Show stderr separately.
    #[serde(default)]
    separate_streams: bool,
    /// After the timeout.
    #[serde(default)]
    on_timeout: OnTimeout,
    /// First lines shown.
    #[schemars(range(min = 0, max = 10_000))]
    head_lines: Option<u64>,
    /// Last lines shown.
    #[schemars(range(min = 0, max = 10_000))]
    tail_lines: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnTimeout {
    #[default]
    Background,
    Kill,
}

fn default_timeout() -> u64 {
    120_000
}

/// Output of at most this many characters is shown whole.
const WHOLE_CHARS: usize = 30_000;

/// Characters shown of a longer output. BashOutput has the rest, so the excerpt can be short.
const EXCERPT_CHARS: usize = 12_000;

/// Characters shown of binary output.
const BINARY_CHARS: usize = 400;

const METADATA: &[MetadataField] = &[
    MetadataField::new(
        "status",
        "string",
        "always",
        "`pending`, `running`, `completed`, `failed`, `killed` or `timeout`.",
    ),
    MetadataField::new("command", "string", "always", "The command, shortened."),
    MetadataField::new("started_at", "integer", "always", "Start, in seconds since 1970."),
    MetadataField::new(
        "cwd",
        "string",
        "always",
        "Working directory: at the end, or at the start of a command that still runs.",
    ),
    MetadataField::new("duration_ms", "integer", "unless `run_in_background`", "Duration so far."),
    MetadataField::new("exit_code", "integer", "the shell exited", "Exit code."),
    MetadataField::new("signal", "integer", "a signal ended the shell", "Number of the signal."),
    MetadataField::new(
        "pipe_exit_codes",
        "array of integer",
        "the last pipeline had several commands",
        "Exit code of each.",
    ),
    MetadataField::new("cpu_ms", "integer", "the shell has ended", "CPU time."),
    MetadataField::new("peak_memory_bytes", "integer", "the shell has ended", "Peak memory."),
    MetadataField::new("stdout", "string", "`separate_streams`", "The shown part of stdout."),
    MetadataField::new("stderr", "string", "`separate_streams`", "The shown part of stderr."),
    MetadataField::new("lines", "integer", "unless `run_in_background`", "Lines of output."),
    MetadataField::new("bytes", "integer", "unless `run_in_background`", "Bytes of output."),
    MetadataField::new(
        "truncated",
        "boolean",
        "unless `run_in_background`",
        "Whether the reply omits lines.",
    ),
    MetadataField::new(
        "dropped_bytes",
        "integer",
        "the output exceeds the buffer",
        "Bytes that are no longer available.",
    ),
    MetadataField::new(
        "escaped_lines",
        "integer",
        "output looks like a note",
        "Lines with a `\\` in front.",
    ),
    MetadataField::new("timed_out", "boolean", "the command exceeded `timeout`", "`true`."),
    MetadataField::new("bash_id", "string", "more can be read with BashOutput", "Id of the job."),
    MetadataField::new(
        "cursor",
        "integer",
        "more can be read with BashOutput",
        "Position in the output up to which it was read.",
    ),
    MetadataField::new(
        "processes_left",
        "array of object",
        "processes of the command still run",
        "These processes.",
    ),
    MetadataField::new("processes_left[].pid", "integer", "with its object", "Process id."),
    MetadataField::new("processes_left[].name", "string", "with its object", "Name."),
];

impl Tool for Bash {
    const NAME: &'static str = "Bash";
    const CATEGORY: Category = Category::Execution;
    const HINTS: Hints = Hints::RUNS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("cmd", "command"),
        ("script", "command"),
        ("working_directory", "cwd"),
        ("workdir", "cwd"),
        ("timeout_ms", "timeout"),
        ("background", "run_in_background"),
    ];
    const LOWERED: &'static [&'static str] = &["timeout", "head_lines", "tail_lines"];
    const METADATA: &'static [&'static [MetadataField]] =
        &[METADATA, LIMIT, SANDBOX, REFUSED, HOSTS, CHANGED_FILES];

    fn access(&self) -> Vec<Access> {
        let directory = self.cwd.iter().map(|cwd| Access::Read(cwd.into()));
        directory.chain([Access::Command(self.script())]).collect()
    }

    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        if self.command.trim().is_empty() {
            return Err(Error::invalid("`command` is empty").hint("Give a bash script."));
        }
        let in_background = self.run_in_background;
        if in_background && cx.session().is_for_one_call() {
            let message = format!(
                "`{RUN_IN_BACKGROUND}`: this session ends with this call, and so does the command"
            );
            return Err(
                Error::invalid(message).hint(format!("Nothing was run. {KEEP_RUNNING_HINT}."))
            );
        }
        check_names(self.env.iter().flatten().map(|(name, _)| name))?;
        let prepared = cx.prepare(self.request())?;
        if cx.dry_run() {
            return Ok(report::rehearsal(&prepared, &self.command));
        }
        let asker = if in_background { None } else { cx.host_asker() };
        let mut command = prepared.start()?;
        if in_background {
            cx.shell()?.await_end(command.job.id());
            return Ok(report::background(&command));
        }
        let timeout = Duration::from_millis(self.timeout);
        let (waited, keyboard_note) = std::thread::scope(|scope| {
            let ask_waiting = || asker.iter().for_each(|asker| asker.ask_waiting(scope));
            wait(cx, &command.job, timeout, &ask_waiting)
        })?;
        command.notes.extend(keyboard_note);
        let kills = self.on_timeout == OnTimeout::Kill;
        let finished = match waited {
            WaitResult::Ended => FinishedCommand::exited(cx, command, self.cwd.is_none())?,
            WaitResult::TimedOut if kills || cx.session().is_for_one_call() => {
                FinishedCommand::killed(cx, command, timeout, kills)
            }
            WaitResult::TimedOut => FinishedCommand::in_background(cx, command, timeout),
        };
        let report = Report::new(cx, &finished, self.excerpt(cx));
        finished.keep_or_forget(cx.shell()?, report.unread_from());
        report.reply()
    }
}

impl Bash {
    /// The command with its script: the variables for this command, and the command. The policy decides on this
    /// script.
    fn request(&self) -> CommandRequest {
        CommandRequest {
            script: self.script(),
            directory: self.cwd.clone(),
            stdin: Stdin::Content(self.stdin.clone().unwrap_or_default().into_bytes()),
            separate_streams: self.separate_streams,
            variables: self.env.clone().unwrap_or_default().into_iter().collect(),
            carries_state: true,
        }
    }

    fn script(&self) -> String {
        let variables = self.env.iter().flatten();
        let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
        with_exports(variables, &self.command)
    }

    fn excerpt(&self, cx: &Cx<'_>) -> ExcerptOptions {
        let lines =
            |lines: Option<u64>| lines.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX));
        let most = cx.limits().reply_chars * 3 / 4;
        let lines_chosen = self.head_lines.is_some() || self.tail_lines.is_some();
        ExcerptOptions {
            whole_chars: WHOLE_CHARS.min(most),
            chars: if lines_chosen { WHOLE_CHARS } else { EXCERPT_CHARS }.min(most),
            line_chars: cx.limits().line_chars,
            head_lines: lines(self.head_lines),
            tail_lines: lines(self.tail_lines),
            folds: true,
        }
    }
}
