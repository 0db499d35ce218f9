//! BashOutput: what a command wrote, and waiting for it.

mod sieve;
mod wanted;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_exec::{Job, Snapshot};
use toolcrib_policy::Access;
use toolcrib_search::{Pattern, Stop, Understood, Wanted};
use toolcrib_text::{Excerpt, ExcerptOptions, Secrets, Shown};

use self::sieve::{Left, Sieve};
use self::wanted::LineRange;
use super::bash::how;
use super::changes::Changes;
use super::shell_output::{each_line, excerpt, last_line, masked_note, whole_characters};
use crate::cancel::Progress;
use crate::cx::{Cx, trouble};
use crate::error::Error;
use crate::helper::MatchingProcesses;
use crate::notes::{bracketed, escapes};
use crate::reply::Reply;
use crate::sandbox::refusals;
use crate::tool::{Category, Hints, Tool};
use crate::words::counted;

/// Reads what a command wrote since it was last read, and tells whether it runs. wait_for waits first: for its
/// end, more output, a line that filter matches, or a TCP port. filter and lines look without moving on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashOutput {
    bash_id: String,
    /// Only lines that match this regex.
    filter: Option<String>,
    /// Default none.
    wait_for: Option<WaitFor>,
    /// Milliseconds. Default 60000.
    #[schemars(range(min = 0, max = 600_000))]
    timeout: Option<u64>,
    /// From an earlier reply; 0 for all.
    cursor: Option<u64>,
    /// Of all output: "100-200", or "-50".
    lines: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WaitFor {
    None,
    Exit,
    Output,
    Regex,
    Port,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a wish to cancel, a line or a port may go unseen.
const GLANCE: Duration = Duration::from_millis(50);

/// How often whoever waits hears of it.
const TELL_EVERY: Duration = Duration::from_millis(500);

impl Tool for BashOutput {
    const NAME: &'static str = "BashOutput";
    const CATEGORY: Category = Category::Execution;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("shell_id", "bash_id"), ("id", "bash_id"), ("wait", "wait_for")];

    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let job = cx.job(&self.bash_id)?;
        let filter = self.filter.as_deref().map(|filter| pattern(cx, filter)).transpose()?;
        let lines = self.lines.as_deref().map(LineRange::parse).transpose()?;
        let wait_for = self.wait_for.unwrap_or(WaitFor::None);
        if wait_for == WaitFor::Regex && filter.is_none() {
            return Err(Error::invalid("`wait_for` is regex, and there is no `filter`")
                .hint("Give the regular expression to wait for as filter."));
        }
        let remembered = cx.shell()?.cursor(&self.bash_id);
        let from = if lines.is_some() { 0 } else { self.cursor.unwrap_or(remembered) };
        let timeout = self.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        let secrets = cx.secrets();
        let waiting = Waiting { wait_for, from, filter: filter.as_ref(), timeout };
        let waited = wait(cx, &job, &secrets, &waiting)?;
        let now = job.snapshot();
        let end = match now.closed {
            true => now.written,
            false => whole_characters(&job, &secrets, now.written),
        };
        let looked = Look { from: from.min(end), end, filter: filter.as_ref(), lines };
        let (shown, masked, left) = looked.at(cx, &job, &secrets);
        cx.check_cancelled()?;
        if filter.is_none() && lines.is_none() {
            cx.shell()?.read_to(&self.bash_id, end);
        }
        let changes = Changes::of_job(cx, &job)?;
        let output = Output { shown, masked, left, changes: &changes };
        let reply = answer(&job, &now, output, end, waited, wait_for);
        Ok(reply.with_all(changes.facts()))
    }
}

/// What is waited for, and for how long.
struct Waiting<'a> {
    wait_for: WaitFor,
    from: u64,
    filter: Option<&'a Pattern>,
    timeout: Duration,
}

/// What came of waiting.
enum Waited {
    /// It is as wanted, or nothing was.
    Done,
    /// Ports were found.
    Ports(Vec<u16>),
    /// It ended first.
    EndedFirst,
    TimedOut,
}

fn wait(cx: &Cx<'_>, job: &Job, secrets: &Secrets, waiting: &Waiting<'_>) -> Result<Waited, Error> {
    let began = Instant::now();
    let (mut told, mut looked_to) = (began, waiting.from);
    if waiting.wait_for == WaitFor::None {
        return Ok(Waited::Done);
    }
    loop {
        cx.check_cancelled()?;
        let now = job.snapshot();
        match waiting.wait_for {
            WaitFor::None => {}
            WaitFor::Exit => {}
            WaitFor::Output if now.written > waiting.from => return Ok(Waited::Done),
            WaitFor::Output => {}
            WaitFor::Regex => {
                let found = waiting.filter.is_some_and(|filter| {
                    let end = began.checked_add(waiting.timeout).unwrap_or(began);
                    let cancel = cx.cancel();
                    let cancelled = || cancel.is_cancelled();
                    let sieve = Sieve::new(filter, Stop::new(end, &cancelled), 1);
                    look_for(sieve, job, secrets, (&mut looked_to, now.written))
                });
                if found {
                    return Ok(Waited::Done);
                }
            }
            WaitFor::Port => {
                let ports = job.ports();
                if !ports.is_empty() {
                    return Ok(Waited::Ports(ports));
                }
            }
        }
        let no_more = !now.status.is_running() && (now.closed || waiting.wait_for == WaitFor::Exit);
        if no_more || now.over {
            let wanted = matches!(waiting.wait_for, WaitFor::Exit);
            return Ok(if wanted { Waited::Done } else { Waited::EndedFirst });
        }
        let left = waiting.timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(Waited::TimedOut);
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let line = last_line(job, secrets);
            cx.progress(Progress { done: began.elapsed().as_secs(), total: None, message: &line });
        }
        let changed = |then: &Snapshot| then.status != now.status || then.closed != now.closed;
        job.wait(left.min(GLANCE), changed);
    }
}

/// Whether a line that came since matches, or may. Lines that are whole are not looked at again.
fn look_for(
    mut sieve: Sieve<'_>,
    job: &Job,
    secrets: &Secrets,
    (looked_to, end): (&mut u64, u64),
) -> bool {
    let mut found = false;
    each_line(job, secrets, *looked_to..end, |line| {
        sieve.line(line, &mut |_| found = true);
        !found
    });
    sieve.finish(&mut |_| found = true);
    let (from, last) = job.read(end.saturating_sub(4096).max(*looked_to), 4096);
    if let Some(newline) = last.iter().rposition(|&byte| byte == b'\n') {
        *looked_to = from + newline as u64 + 1;
    }
    found
}

/// Which lines to show.
struct Look<'a> {
    from: u64,
    end: u64,
    filter: Option<&'a Pattern>,
    lines: Option<LineRange>,
}

impl Look<'_> {
    /// What is shown, how many values in it were masked, and of which lines it is not known whether they match.
    fn at(&self, cx: &Cx<'_>, job: &Job, secrets: &Secrets) -> (Shown, usize, Left) {
        let options = ExcerptOptions {
            chars: cx.limits().reply_chars * 3 / 4,
            line_chars: cx.limits().line_chars,
            head_lines: None,
            tail_lines: self.lines.and_then(LineRange::last),
        };
        if self.filter.is_none() && self.lines.is_none() {
            let (shown, masked) = excerpt(job, secrets, self.from..self.end, options);
            return (shown, masked, Left::default());
        }
        let mut excerpt = Excerpt::new(options);
        let cancel = cx.cancel();
        let cancelled = || cancel.is_cancelled();
        let stop = || Stop::new(cx.search_until(), &cancelled);
        let mut sieve = self.filter.map(|filter| Sieve::new(filter, stop(), u64::MAX));
        let mut number = 0;
        let masked = each_line(job, secrets, self.from..self.end, |line| {
            number += 1;
            let wanted = self.lines.is_none_or(|lines| lines.contains(number));
            match &mut sieve {
                _ if !wanted => {}
                None => excerpt.line(line),
                Some(sieve) => sieve.line(line, &mut |line| excerpt.line(line)),
            }
            self.lines.is_none_or(|lines| !lines.is_past(number))
        });
        let left = sieve.map(|sieve| sieve.finish(&mut |line| excerpt.line(line)));
        (excerpt.finish(), masked, left.unwrap_or_default())
    }
}

/// What is shown of an output, how many values in it were masked, which lines are not decided, and what was
/// changed meanwhile.
struct Output<'a> {
    shown: Shown,
    masked: usize,
    left: Left,
    changes: &'a Changes,
}

fn answer(
    job: &Job,
    now: &Snapshot,
    Output { shown, masked, left, changes }: Output<'_>,
    cursor: u64,
    waited: Waited,
    wait_for: WaitFor,
) -> Reply {
    let mut text = shown.text;
    if text.is_empty() {
        text.push_str("[no new output]\n");
    }
    let escaped = escapes(&text);
    text.extend(left.notes().map(bracketed));
    text.extend(masked_note(masked).map(bracketed));
    text.extend(escaped.iter().map(|(note, _)| bracketed(note)));
    text.push_str(&bracketed(state(job, now)));
    let refused = job.refusals();
    text.extend(refusals::notes(&refused, refusals::MAX_LINES).iter().map(bracketed));
    let what = match wait_for {
        WaitFor::Regex => "no line matched",
        WaitFor::Port => "it listens on no port",
        WaitFor::Output => "there is no more output",
        WaitFor::Exit | WaitFor::None => "it still runs",
    };
    match &waited {
        Waited::Done => {}
        Waited::Ports(ports) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            text.push_str(&bracketed(format!("listens on port {}", ports.join(", "))));
        }
        Waited::EndedFirst => text.push_str(&bracketed(format!("it ended, and {what}"))),
        Waited::TimedOut => text.push_str(&bracketed(format!("the time is up, and {what}"))),
    }
    text.push_str(&changes.text());
    let reply = Reply::new(text)
        .with("bash_id", job.id())
        .with("status", now.status.name())
        .with("cursor", cursor)
        .with("lines", shown.lines)
        .with("undecided_lines", left.count())
        .with("truncated", shown.left_out > 0)
        .with("dropped_bytes", now.gap.end - now.gap.start)
        .with("timed_out", matches!(waited, Waited::TimedOut));
    let reply = match now.ended.as_ref().map(|ended| ended.exit) {
        Some(toolcrib_exec::Exit::Code(code)) => reply.with("exit_code", code),
        Some(toolcrib_exec::Exit::Signal(signal)) => reply.with("signal", signal),
        None => reply,
    };
    let reply = match refusals::facts(&refused) {
        Some(refused) => reply.with("refused", refused),
        None => reply,
    };
    let reply = match escaped {
        Some((_, lines)) => reply.with("escaped_lines", lines),
        None => reply,
    };
    match waited {
        Waited::Ports(ports) => reply.with("ports", ports),
        _ => reply,
    }
}

/// What a job is doing, in words.
pub(super) fn state(job: &Job, now: &Snapshot) -> String {
    let ended = now.ended.as_ref().map(|ended| how(ended.exit));
    let words = match (&now.broken, ended) {
        (Some(broken), _) => trouble(broken).message().to_owned(),
        (None, Some(ended)) => format!("{}, {ended}", now.status.name()),
        (None, None) => now.status.name().to_owned(),
    };
    match job.processes().len() {
        0 => words,
        _ if now.status.is_running() => words,
        left => format!("{words}; {} of it still run", counted(left as u64, "process")),
    }
}

fn pattern(cx: &Cx<'_>, filter: &str) -> Result<Pattern, Error> {
    let wanted = Wanted { pattern: filter, literal: false, ignore_case: false, multiline: false };
    let cancel = cx.cancel();
    let cancelled = || cancel.is_cancelled();
    let stop = Stop::new(cx.search_until(), &cancelled);
    let pattern = Pattern::new(wanted, &MatchingProcesses::of(cx), &stop)
        .map_err(|error| Error::invalid(format!("`filter`: {error}")))?;
    match pattern.understood() {
        Understood::AsText { why, column } => Err(Error::invalid(format!(
            "`filter` is no regular expression: {why}, at character {column}"
        ))
        .hint("Escape what is meant as it stands with a backslash.")),
        _ => Ok(pattern),
    }
}
