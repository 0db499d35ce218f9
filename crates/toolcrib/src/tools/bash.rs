//! Bash: a command, run and waited for.

mod exit_status;
mod pipe;
mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_exec::{Ending, Job, Snapshot, Status};
use toolcrib_policy::Access;
use toolcrib_text::{ExcerptOptions, visible_name};

use self::report::{KEEPS_RUNNING, Report};
use super::shell_output::last_line;
use super::timeout::{lowered_note, milliseconds};
use crate::cancel::Progress;
use crate::cx::{Cx, StartedCommand, ToStart, job_error};
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Runs a command in bash and returns its output and exit code. The next command starts in its working directory, with
/// its exported variables. There is no terminal and no editor. A command that exceeds timeout, or leaves processes,
/// continues in the background: BashOutput and KillShell take its bash_id. Long output shows its start, first errors
/// and end; BashOutput has the rest. Changed files are named, for Undo. /tmp is the session's own, also for file
/// tools. Notes are in brackets; output that looks like one gets a `\` in front.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    command: String,
    description: Option<String>,
    /// Milliseconds, up to 600000. Default 120000.
    timeout: Option<u64>,
    /// Answer at once.
    run_in_background: Option<bool>,
    cwd: Option<String>,
    /// For this command only.
    env: Option<BTreeMap<String, String>>,
    stdin: Option<String>,
    separate_streams: Option<bool>,
    on_timeout: Option<OnTimeout>,
    #[schemars(range(min = 0, max = 10_000))]
    head_lines: Option<u64>,
    #[schemars(range(min = 0, max = 10_000))]
    tail_lines: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnTimeout {
    Background,
    Kill,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Less is meant in seconds.
const LEAST_TIMEOUT: u64 = 1_000;

/// How long a wish to cancel may go unseen.
const GLANCE: Duration = Duration::from_millis(25);

/// How often whoever waits hears of it.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// After the shell has ended, what others still write is waited for until it is quiet for so long, and
/// never for longer than the second.
const QUIET: Duration = Duration::from_millis(200);
const DRAIN: Duration = Duration::from_secs(1);

/// How long a keeper may take to see that nothing is left.
const MOMENT: Duration = Duration::from_millis(30);

/// How long a tree that was told to end is waited for: its half second, and some for the machine.
const DYING: Duration = Duration::from_secs(5);

/// Output of at most this many characters is shown whole.
const WHOLE_CHARS: usize = 30_000;

/// Characters shown of a longer output. BashOutput has the rest, so the excerpt can be short.
const EXCERPT_CHARS: usize = 12_000;

/// Characters shown of binary output.
const BINARY_CHARS: usize = 400;

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

    fn access(&self) -> Vec<Access> {
        let directory = self.cwd.iter().map(|cwd| Access::Read(cwd.into()));
        directory.chain([Access::Command(self.script())]).collect()
    }

    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        if self.command.trim().is_empty() {
            return Err(Error::invalid("`command` is empty").hint("Give a script for bash."));
        }
        let timeout = milliseconds(self.timeout, LEAST_TIMEOUT)?.unwrap_or(DEFAULT_TIMEOUT);
        let in_background = self.run_in_background.unwrap_or(false);
        if in_background && cx.session().is_for_one_call() {
            let message =
                "`run_in_background`: this session ends with this call, and so would the command";
            return Err(Error::invalid(message).hint(format!("Nothing was run. {KEEPS_RUNNING}.")));
        }
        if let Some(name) =
            self.env.iter().flatten().map(|(name, _)| name).find(|name| !is_name(name))
        {
            let name = visible_name(name.as_bytes());
            return Err(Error::invalid(format!("`env`: {name} is no name of a variable"))
                .hint("Names have letters, digits and _, and do not begin with a digit."));
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
        let mut started = cx.start(&ToStart {
            script: &self.script(),
            directory: self.cwd.as_deref(),
            stdin: self.stdin.as_deref().unwrap_or_default(),
            separate_streams: self.separate_streams.unwrap_or(false),
        })?;
        started.given = self.env.iter().flatten().map(|(n, v)| (n.clone(), v.clone())).collect();
        started.notes.extend(lowered_note(self.timeout));
        if in_background {
            return Ok(report::background(started));
        }
        let (waited, no_keys) = wait(cx, &started.job, timeout)?;
        started.notes.extend(no_keys);
        match waited {
            Waited::Ended => self.ended(cx, started),
            Waited::TimedOut => self.timed_out(cx, started, timeout),
        }
    }
}

impl Bash {
    /// What is run and decided about: the variables for this command, and the command.
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
            report.end_with_the_session();
        }
        report.note_reviews(cx);
        report.look_for_changes(cx);
        report.keep_or_forget(cx)?;
        report.answer()
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
        if self.on_timeout == Some(OnTimeout::Kill) || one_call {
            job.end(Ending::Prompt, Status::TimedOut);
            let now = job.wait(DYING, |now| now.all_exited && now.closed);
            let ended = if now.all_exited {
                "and all it had started was ended"
            } else {
                "and is being ended"
            };
            let message = format!("the command took longer than {seconds} s {ended}");
            let mut report = Report::new(started, now, self.excerpt(cx));
            if one_call && self.on_timeout != Some(OnTimeout::Kill) {
                report.end_with_the_session();
                report.note(format!("it cannot go on behind this call; {KEEPS_RUNNING}"));
            }
            report.look_for_changes(cx);
            return Err(report.error(ErrorKind::Timeout, message));
        }
        let report = Report::new(started, job.snapshot(), self.excerpt(cx));
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
        }
    }
}

enum Waited {
    Ended,
    TimedOut,
}

/// Until the shell has ended and its output has come, or the time is up. A wish to cancel ends it all. A program
/// that waits for keys is ended, and that is said.
fn wait(cx: &Cx<'_>, job: &Job, timeout: Duration) -> Result<(Waited, Option<String>), Error> {
    let began = Instant::now();
    let mut told = began;
    let (mut suspects, mut no_keys) = (Vec::new(), None);
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        let now = job.wait(left.min(GLANCE), |now| !now.status.is_running());
        if !now.status.is_running() {
            return Ok((Waited::Ended, no_keys));
        }
        if let Err(cancelled) = cx.check_cancelled() {
            job.end(Ending::Prompt, Status::Killed);
            job.wait(DYING, |now| now.all_exited);
            return Err(cancelled);
        }
        if left.is_zero() {
            return Ok((Waited::TimedOut, no_keys));
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            // One that waited the last time as well.
            let waiting = job.waiting_for_keyboard();
            for process in waiting.iter().filter(|process| suspects.contains(*process)) {
                job.end_if_waiting_for_keyboard(process);
                no_keys = Some(no_keys_note(&process.name));
            }
            suspects = waiting;
            let line = last_line(job, &cx.secrets());
            cx.progress(Progress { done: began.elapsed().as_secs(), total: None, message: &line });
        }
    }
}

fn no_keys_note(program: &str) -> String {
    format!(
        "{} waited for keys and was ended: there is no terminal; Edit and Write change files, sed -i does in scripts",
        visible_name(program.as_bytes())
    )
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The shell has ended; what it left running may hold its output for ever, and may be about to write the
/// last of it.
fn drain(job: &Job) -> Snapshot {
    let began = Instant::now();
    let mut now = job.snapshot();
    while !now.closed && began.elapsed() < DRAIN {
        let written = now.written;
        now = job.wait(QUIET, |now| now.closed);
        if now.written == written {
            break;
        }
    }
    // Whether anything is left is known a moment later; to ask the system for its processes takes longer.
    job.wait(MOMENT, |now| now.all_exited)
}
