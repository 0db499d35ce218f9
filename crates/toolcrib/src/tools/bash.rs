//! Bash: a command, run and waited for.

mod answer;
mod report;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_exec::{Ending, Job, Snapshot, Status};
use toolcrib_policy::Access;
use toolcrib_text::ExcerptOptions;

use self::report::Report;
pub(super) use self::report::how;
use super::shell_output::last_line;
use crate::cancel::Progress;
use crate::cx::{Cx, StartedCommand, trouble};
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Runs a command in bash and answers its output, both streams, and its exit code. The next one begins where
/// this ended, with the variables it exported. stdin is `stdin` or empty; editors do nothing. What outlasts
/// timeout, or is left running, goes on in the background: BashOutput and KillShell take its bash_id. A long
/// output shows its beginning, first errors and end; BashOutput has the rest. Files it changed are named; Undo
/// takes them back. Notes are in brackets; output that looks like one gets a `\` in front.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    command: String,
    #[expect(dead_code, reason = "for whoever reads the call, not for us")]
    description: Option<String>,
    /// Milliseconds, up to 600000. Default 120000.
    #[schemars(range(min = 1_000, max = 600_000))]
    timeout: Option<u64>,
    /// Answer at once.
    run_in_background: Option<bool>,
    cwd: Option<String>,
    stdin: Option<String>,
    /// Default background.
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

/// Characters of output in a reply.
const OUTPUT_CHARS: usize = 30_000;

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
        directory.chain([Access::Command(self.command.clone())]).collect()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        if self.command.trim().is_empty() {
            return Err(Error::invalid("`command` is empty").hint("Give a script for bash."));
        }
        if self.command.contains('\0') {
            return Err(Error::invalid("`command` has a zero byte, which no script can have")
                .hint("To write one, let printf do it: printf '\\0'."));
        }
        if cx.dry_run() {
            let directory = match &self.cwd {
                Some(cwd) => cx.show(cwd)?,
                None => cx.shell_directory()?,
            };
            return Ok(Reply::new(format!("Would run in {directory}:\n{}\n", self.command)));
        }
        let stdin = self.stdin.as_deref().unwrap_or_default();
        let started = cx.start(&self.command, self.cwd.as_deref(), stdin)?;
        if self.run_in_background.unwrap_or(false) {
            return Ok(report::background(started));
        }
        let timeout = self.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        match wait(cx, &started.job, timeout)? {
            Waited::Ended => self.ended(cx, started),
            Waited::TimedOut => self.timed_out(cx, started, timeout),
        }
    }
}

impl Bash {
    fn ended(self, cx: &Cx<'_>, started: StartedCommand) -> Result<Reply, Error> {
        let now = drain(&started.job);
        if let Some(broken) = &now.broken {
            return Err(trouble(broken));
        }
        let mut report = Report::new(started, now, self.excerpt(cx));
        report.carry(cx, self.cwd.is_none())?;
        report.remember_refusals(cx)?;
        report.note_reviews(cx);
        report.look_for_changes(cx);
        report.keep_or_forget(cx)?;
        report.answer(&self.command)
    }

    fn timed_out(
        self,
        cx: &Cx<'_>,
        started: StartedCommand,
        timeout: Duration,
    ) -> Result<Reply, Error> {
        let seconds = timeout.as_secs_f64();
        let job = started.job.clone();
        if self.on_timeout == Some(OnTimeout::Kill) {
            job.end(Ending::Prompt, Status::TimedOut);
            let now = job.wait(DYING, |now| now.over && now.closed);
            let ended =
                if now.over { "and all it had started was ended" } else { "and is being ended" };
            let message = format!("the command took longer than {seconds} s {ended}");
            let mut report = Report::new(started, now, self.excerpt(cx));
            report.look_for_changes(cx);
            return Err(report.error(ErrorKind::Timeout, message));
        }
        let report = Report::new(started, job.snapshot(), self.excerpt(cx));
        report.moved_to_background(cx, seconds)
    }

    fn excerpt(&self, cx: &Cx<'_>) -> ExcerptOptions {
        let lines =
            |lines: Option<u64>| lines.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX));
        ExcerptOptions {
            chars: OUTPUT_CHARS.min(cx.limits().reply_chars * 3 / 4),
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

/// Until the shell has ended and its output has come, or the time is up. A wish to cancel ends it all.
fn wait(cx: &Cx<'_>, job: &Job, timeout: Duration) -> Result<Waited, Error> {
    let began = Instant::now();
    let mut told = began;
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        let now = job.wait(left.min(GLANCE), |now| !now.status.is_running());
        if !now.status.is_running() {
            return Ok(Waited::Ended);
        }
        if let Err(cancelled) = cx.check_cancelled() {
            job.end(Ending::Prompt, Status::Killed);
            job.wait(DYING, |now| now.over);
            return Err(cancelled);
        }
        if left.is_zero() {
            return Ok(Waited::TimedOut);
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let line = last_line(job, &cx.secrets());
            cx.progress(Progress { done: began.elapsed().as_secs(), total: None, message: &line });
        }
    }
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
    job.wait(MOMENT, |now| now.over)
}
