//! Bash: runs a command.

mod exit_code_one;
mod failed_pipe_parts;
mod refused_contents;
mod report;
mod sandbox_hints;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_exec::{Ending, Job, Snapshot, Status};
use toolcrib_policy::Access;
use toolcrib_text::{ExcerptOptions, visible_name};

use self::report::{KEEP_RUNNING_HINT, Report};
use super::changed_files::CHANGED_FILES;
use super::shell_output::last_line;
use crate::cancel_and_progress::Progress;
use crate::cx::{Cx, StartedCommand, ToStart, job_error};
use crate::dialect_names::{EDIT, RUN_IN_BACKGROUND, WRITE};
use crate::error::{Error, ErrorKind};
use crate::metadata_fields::MetadataField;
use crate::network::notes::HOSTS;
use crate::reply::Reply;
use crate::sandbox_settings::SANDBOX;
use crate::sandbox_settings::refusals::REFUSED;
use crate::tool::{Category, Hints, Tool};

/// Runs a bash command. Working directory and exported variables carry over. There is no terminal. A command that
/// exceeds `timeout`, or leaves processes, continues in the background: use its `bash_id` with `BashOutput` and
/// `KillShell`. `BashOutput` also shows the omitted lines of long output. /tmp is private to the session, also for
/// file tools. Notes are in brackets; similar output gets a `\` in front.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    /// A script for bash.
    command: String,
    /// For the user.
    description: Option<String>,
    /// Milliseconds, up to 600000.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1_000, max = 600_000))]
    timeout: u64,
    /// Return at once.
    #[serde(default)]
    run_in_background: bool,
    /// Working directory.
    cwd: Option<String>,
    /// For this command only.
    env: Option<BTreeMap<String, String>>,
    /// Standard input.
    stdin: Option<String>,
    /// Show stderr separately.
    #[serde(default)]
    separate_streams: bool,
    /// After the timeout.
    #[serde(default)]
    on_timeout: OnTimeout,
    /// First lines to show.
    #[schemars(range(min = 0, max = 10_000))]
    head_lines: Option<u64>,
    /// Last lines to show.
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

/// Interval between checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Interval between progress reports, and between checks for programs that wait for the keyboard.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// After the shell has ended, its background processes may still write. The output is complete after this long
/// without output, or after the second limit.
const QUIET_PERIOD: Duration = Duration::from_millis(200);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time that a shim may take to report that all processes have exited.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_millis(30);

/// Time to wait for processes that were told to end: half a second of grace, and more on a slow machine.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

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
        &[METADATA, SANDBOX, REFUSED, HOSTS, CHANGED_FILES];

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
        let timeout = Duration::from_millis(self.timeout);
        let in_background = self.run_in_background;
        if in_background && cx.session().is_for_one_call() {
            let message = format!(
                "`{RUN_IN_BACKGROUND}`: this session ends with this call, and so does the command"
            );
            return Err(
                Error::invalid(message).hint(format!("Nothing was run. {KEEP_RUNNING_HINT}."))
            );
        }
        if let Some(name) =
            self.env.iter().flatten().map(|(name, _)| name).find(|name| !is_name(name))
        {
            let name = visible_name(name.as_bytes());
            return Err(Error::invalid(format!("`env`: {name} is not a valid variable name"))
                .hint("Use letters, digits and _, and no digit at the start."));
        }
        if cx.dry_run() {
            let (directory, confined) = cx.rehearse(&self.script(), self.cwd.as_deref())?;
            let held = confined.phrase();
            let text = format!(
                "Dry run, nothing was run. Would run in {directory}, {held}:\n{}\n",
                self.command
            );
            let facts = confined.facts().into_iter();
            return Ok(facts.fold(Reply::new(text), |reply, (key, value)| reply.with(key, value)));
        }
        let asker = if in_background { None } else { cx.host_asker() };
        let mut started = cx.start(&ToStart {
            script: &self.script(),
            directory: self.cwd.as_deref(),
            stdin: self.stdin.as_deref().unwrap_or_default(),
            separate_streams: self.separate_streams,
        })?;
        started.given = self.env.iter().flatten().map(|(n, v)| (n.clone(), v.clone())).collect();
        if in_background {
            return Ok(report::background(started));
        }
        let (waited, killed_program_note) = std::thread::scope(|scope| {
            wait(cx, &started.job, timeout, &|| {
                asker.iter().for_each(|asker| asker.ask_waiting(scope));
            })
        })?;
        started.notes.extend(killed_program_note);
        match waited {
            WaitResult::Ended => self.ended(cx, started),
            WaitResult::TimedOut => self.timed_out(cx, started, timeout),
        }
    }
}

impl Bash {
    /// The script that runs and on which the policy decides: the variables for this command, and the command.
    fn script(&self) -> String {
        let variables = self
            .env
            .iter()
            .flatten()
            .map(|(name, value)| format!("export {name}='{}'; ", value.replace('\'', "'\\''")));
        variables.chain([self.command.clone()]).collect()
    }

    fn ended(self, cx: &Cx<'_>, started: StartedCommand) -> Result<Reply, Error> {
        let now = drain(&started.job);
        if let Some(broken) = &now.error {
            return Err(job_error(broken));
        }
        let mut report = Report::new(started, now, self.excerpt(cx));
        report.carry(cx, self.cwd.is_none())?;
        if cx.session().is_for_one_call() {
            report.end_with_session();
        }
        report.note_reviews(cx);
        report.note_sandbox_hints(cx);
        report.note_hosts(cx);
        report.note_changes(cx);
        report.keep_or_forget(cx)?;
        report.finish()
    }

    fn timed_out(
        self,
        cx: &Cx<'_>,
        started: StartedCommand,
        timeout: Duration,
    ) -> Result<Reply, Error> {
        let seconds = timeout.as_secs_f64();
        let job = started.job.clone();
        let one_call = cx.session().is_for_one_call();
        if self.on_timeout == OnTimeout::Kill || one_call {
            job.end(Ending::Prompt, Status::TimedOut);
            let now = job.wait(KILL_TIMEOUT, |now| now.all_exited && now.closed);
            let ended = if now.all_exited {
                "and was killed with its child processes"
            } else {
                "and is being killed"
            };
            let message = format!("the command took longer than {seconds} s {ended}");
            let mut report = Report::new(started, now, self.excerpt(cx));
            if one_call && self.on_timeout != OnTimeout::Kill {
                report.end_with_session();
                report.note(format!("it cannot continue after this call. {KEEP_RUNNING_HINT}"));
            }
            report.note_hosts(cx);
            report.note_changes(cx);
            return Err(report.error(ErrorKind::Timeout, message));
        }
        let mut report = Report::new(started, job.snapshot(), self.excerpt(cx));
        report.note_hosts(cx);
        report.moved_to_background(cx, seconds)
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

enum WaitResult {
    Ended,
    TimedOut,
}

/// Waits until the shell has ended or the timeout is over. Cancellation ends the command. A program that waits for
/// the keyboard is killed, and a note says so. `ask_waiting` asks about the hosts that the command waits for.
fn wait(
    cx: &Cx<'_>,
    job: &Job,
    timeout: Duration,
    ask_waiting: &dyn Fn(),
) -> Result<(WaitResult, Option<String>), Error> {
    let began = Instant::now();
    let mut last_progress = began;
    let (mut suspects, mut killed_program_note) = (Vec::new(), None);
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        let now = job.wait(left.min(POLL_INTERVAL), |now| !now.status.is_running());
        if !now.status.is_running() {
            return Ok((WaitResult::Ended, killed_program_note));
        }
        ask_waiting();
        if let Err(cancelled) = cx.check_cancelled() {
            job.end(Ending::Prompt, Status::Killed);
            job.wait(KILL_TIMEOUT, |now| now.all_exited);
            return Err(cancelled);
        }
        if left.is_zero() {
            return Ok((WaitResult::TimedOut, killed_program_note));
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            // Only a process that also waited at the previous check.
            let waiting = job.waiting_for_keyboard();
            for process in waiting.iter().filter(|process| suspects.contains(*process)) {
                job.end_if_waiting_for_keyboard(process);
                killed_program_note = Some(keyboard_note(&process.name));
            }
            suspects = waiting;
            let line = last_line(job, &cx.secrets());
            cx.progress(Progress { done: began.elapsed().as_secs(), total: None, message: &line });
        }
    }
}

fn keyboard_note(program: &str) -> String {
    format!(
        "{} waited for keyboard input and was killed: there is no terminal. Use {EDIT}, {WRITE} or sed -i to change files",
        visible_name(program.as_bytes())
    )
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Waits for the last output after the shell has ended. Processes that it left running may keep the output open for
/// ever.
fn drain(job: &Job) -> Snapshot {
    let began = Instant::now();
    let mut now = job.snapshot();
    while !now.closed && began.elapsed() < DRAIN_TIMEOUT {
        let written = now.written;
        now = job.wait(QUIET_PERIOD, |now| now.closed);
        if now.written == written {
            break;
        }
    }
    // The shim reports a moment later whether processes are left. Asking the system for them takes longer.
    job.wait(EXIT_REPORT_TIMEOUT, |now| now.all_exited)
}
