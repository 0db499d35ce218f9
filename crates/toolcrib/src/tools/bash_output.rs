//! BashOutput: what a command wrote, and waiting for it.

mod line_filter;
mod line_range;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_exec::{Job, Network, Snapshot};
use toolcrib_policy::Access;
use toolcrib_search::{Deadline, Pattern, PatternOptions, PatternSyntax};
use toolcrib_text::{Excerpt, ExcerptOptions, ExcerptShown, Secrets, visible_name};

use self::line_filter::{Left, Sieve};
use self::line_range::LineRange;
use super::changed_files::CHANGED_FILES;
use super::changed_files::Changes;
use super::command_messages::{listens_on, state};
use super::shell_output::{
    OutputLog, dropped_note, each_line, excerpt, last_line, masked_note, whole_characters,
};
use super::timeout::{lowered_note, milliseconds};
use crate::cancel::Progress;
use crate::cx::Cx;
use crate::error::Error;
use crate::helper::MatchingProcesses;
use crate::metadata_field::MetadataField;
use crate::names::{BASH, Name, SEPARATE_STREAMS, WAIT_FOR};
use crate::network::notes::{self, HOSTS};
use crate::output_notes::{bracketed, escape_note};
use crate::reply::Reply;
use crate::sandbox::refusals;
use crate::sandbox::refusals::REFUSED;
use crate::tool::{Category, Hints, Tool};

/// Reads a job's new output and its state. `wait_for` waits first: for exit, more output, a line that `filter` (a
/// regex) matches, or a TCP port (`filter` can name it). `filter` and `lines` search all output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashOutput {
    /// Id of the job.
    bash_id: String,
    /// A regex.
    filter: Option<String>,
    /// What to wait for.
    #[serde(default)]
    wait_for: WaitFor,
    /// Milliseconds, up to 600000.
    #[serde(default = "default_timeout")]
    timeout: u64,
    /// From an earlier reply; 0 for all.
    cursor: Option<u64>,
    /// "100-200", or "-50".
    lines: Option<String>,
    /// stderr of a command with `separate_streams`.
    #[serde(default)]
    stream: StreamName,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StreamName {
    #[default]
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WaitFor {
    #[default]
    None,
    Exit,
    Output,
    Regex,
    Port,
}

const TIMEOUT: Name<'_> = Name::field("BashOutput", "timeout");
const STREAM: Name<'_> = Name::field("BashOutput", "stream");

fn default_timeout() -> u64 {
    60_000
}

/// How long a wish to cancel, a line or a port may go unseen.
const GLANCE: Duration = Duration::from_millis(50);

/// How long a keeper may take to see that nothing is left.
const MOMENT: Duration = Duration::from_millis(200);

/// How often whoever waits hears of it.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Metadata of its replies.
const METADATA: &[MetadataField] = &[
    MetadataField::new("bash_id", "string", "always", "Id of the job."),
    MetadataField::new(
        "status",
        "string",
        "always",
        "`pending`, `running`, `completed`, `failed`, `killed` or `timeout`.",
    ),
    MetadataField::new("cursor", "integer", "always", "Position in the output, for the next call."),
    MetadataField::new("lines", "integer", "always", "Lines in the reply and left out of it."),
    MetadataField::new(
        "undecided_lines",
        "integer",
        "always",
        "Lines that could not be matched within the limits.",
    ),
    MetadataField::new(
        "truncated",
        "boolean",
        "always",
        "Whether lines are left out of the reply.",
    ),
    MetadataField::new(
        "dropped_bytes",
        "integer",
        "always",
        "Bytes of output that are no longer available.",
    ),
    MetadataField::new("timed_out", "boolean", "always", "Whether the wait ended by `timeout`."),
    MetadataField::new("exit_code", "integer", "the shell exited", "Exit code."),
    MetadataField::new("signal", "integer", "a signal ended the shell", "Number of the signal."),
    MetadataField::new(
        "escaped_lines",
        "integer",
        "output looks like a note",
        "Lines with a `\\` in front.",
    ),
    MetadataField::new(
        "ports",
        "array of integer",
        "`wait_for` is port, and one was found",
        "The ports.",
    ),
];

impl Tool for BashOutput {
    const NAME: &'static str = "BashOutput";
    const CATEGORY: Category = Category::Execution;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("shell_id", "bash_id"), ("id", "bash_id"), ("wait", "wait_for")];
    const METADATA: &'static [&'static [MetadataField]] =
        &[METADATA, REFUSED, HOSTS, CHANGED_FILES];

    fn access(&self) -> Vec<Access> {
        Vec::new()
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let job = cx.job(&self.bash_id)?;
        let wait_for = self.wait_for;
        let (port, filter) = match (wait_for, self.filter.as_deref()) {
            (WaitFor::Port, Some(port)) => (Some(port_number(port)?), None),
            (_, filter) => (None, filter),
        };
        let filter = filter.map(|filter| pattern(cx, filter)).transpose()?;
        let lines = self.lines.as_deref().map(LineRange::parse).transpose()?;
        if wait_for == WaitFor::Regex && filter.is_none() {
            return Err(Error::invalid(format!("`{WAIT_FOR}` is regex, and there is no `filter`"))
                .hint("Give the regular expression to wait for as filter."));
        }
        let errors = match self.stream {
            StreamName::Stderr => Some(job.errors().ok_or_else(|| no_errors(&job))?),
            StreamName::Stdout => None,
        };
        let stream = match &errors {
            Some(errors) => ReadStream { log: errors, is_errors: true },
            None => ReadStream { log: &*job, is_errors: false },
        };
        // Only the position in stdout is remembered.
        let remembered = if stream.is_errors { 0 } else { cx.shell()?.cursor(job.id()) };
        // Without a cursor, a filter is for all output; what is waited for is new.
        let all = lines.is_some()
            || (filter.is_some() && self.cursor.is_none() && wait_for != WaitFor::Regex);
        let from = if all { 0 } else { self.cursor.unwrap_or(remembered) };
        let timeout = milliseconds(self.timeout);
        let secrets = cx.secrets();
        let since = self.cursor.unwrap_or(remembered);
        let waiting = Waiting { wait_for, from: since, filter: filter.as_ref(), port, timeout };
        let waited = wait(cx, (&job, stream), &secrets, &waiting)?;
        let now = job.snapshot();
        let end = match now.closed {
            true => stream.written(&now),
            false => whole_characters(stream.log, &secrets, stream.written(&now)),
        };
        let looked = OutputView { from: from.min(end), end, filter: filter.as_ref(), lines };
        let mut output = looked.at(cx, stream.log, &secrets);
        output.notes.extend(lowered_note(TIMEOUT, self.timeout));
        cx.check_cancelled()?;
        if filter.is_none() && lines.is_none() && !stream.is_errors && !cx.dry_run() {
            cx.shell()?.read_to(job.id(), end);
        }
        let changes = changes(cx, &job, &now)?;
        let (network, changes_text) = (cx.network(), changes.text());
        let hosts = if cx.dry_run() { Vec::new() } else { cx.take_host_notes(&job) };
        output.notes.extend(notes::lines(&hosts));
        let exposed = match &waited {
            Waited::Ports(ports) => ports.first().and_then(|port| cx.exposed(*port)),
            _ => None,
        };
        let ending = Ending { waited, wait_for, port, network, exposed, changes: changes_text };
        let reply = answer(&job, &now, output, end, ending);
        let hosts = notes::facts(&hosts).map(|hosts| ("hosts", hosts)).into_iter().collect();
        Ok(reply.with_all(changes.facts()).with_all(hosts))
    }
}

/// The files that a job has changed, once nothing of it runs. That is known a moment after its shell has ended.
fn changes(cx: &Cx<'_>, job: &Job, now: &Snapshot) -> Result<Changes, Error> {
    if !now.status.is_running() {
        job.wait(MOMENT, |now| now.all_exited);
    }
    Changes::of_job(cx, job)
}

/// The stream that is read.
#[derive(Clone, Copy)]
struct ReadStream<'a> {
    log: &'a dyn OutputLog,
    is_errors: bool,
}

impl ReadStream<'_> {
    fn written(self, now: &Snapshot) -> u64 {
        if self.is_errors { now.errors_written.unwrap_or(0) } else { now.written }
    }
}

fn no_errors(job: &Job) -> Error {
    let message = format!("the stderr of {} is part of its output", job.id());
    Error::invalid(message)
        .hint(format!("Omit {STREAM}. {BASH} with {SEPARATE_STREAMS} stores stderr apart."))
}

/// What is waited for, and for how long.
struct Waiting<'a> {
    wait_for: WaitFor,
    from: u64,
    filter: Option<&'a Pattern>,
    port: Option<u16>,
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

fn wait(
    cx: &Cx<'_>,
    (job, stream): (&Job, ReadStream<'_>),
    secrets: &Secrets,
    waiting: &Waiting<'_>,
) -> Result<Waited, Error> {
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
            WaitFor::Output if stream.written(&now) > waiting.from => return Ok(Waited::Done),
            WaitFor::Output => {}
            WaitFor::Regex => {
                let found = waiting.filter.is_some_and(|filter| {
                    let end = began.checked_add(waiting.timeout).unwrap_or(began);
                    let cancel = cx.cancel();
                    let cancelled = || cancel.is_cancelled();
                    let sieve = Sieve::new(filter, Deadline::new(end, &cancelled), 1);
                    let end = stream.written(&now);
                    look_for(sieve, stream.log, secrets, (&mut looked_to, end))
                });
                if found {
                    return Ok(Waited::Done);
                }
            }
            WaitFor::Port => {
                let mut ports = job.ports();
                ports.retain(|port| waiting.port.is_none_or(|wanted| *port == wanted));
                if !ports.is_empty() {
                    return Ok(Waited::Ports(ports));
                }
            }
        }
        let no_more = !now.status.is_running() && (now.closed || waiting.wait_for == WaitFor::Exit);
        if no_more || now.all_exited {
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
    log: &dyn OutputLog,
    secrets: &Secrets,
    (looked_to, end): (&mut u64, u64),
) -> bool {
    let mut found = false;
    each_line(log, secrets, *looked_to..end, |line| {
        sieve.line(&line.text, &mut |_| found = true);
        !found
    });
    sieve.finish(&mut |_| found = true);
    let (from, mut last) = log.read(end.saturating_sub(4096).max(*looked_to), 4096);
    // More may have come since; nothing of that was looked at.
    last.truncate(usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX));
    if let Some(newline) = last.iter().rposition(|&byte| byte == b'\n') {
        *looked_to = from + newline as u64 + 1;
    }
    found
}

/// Which lines to show.
struct OutputView<'a> {
    from: u64,
    end: u64,
    filter: Option<&'a Pattern>,
    lines: Option<LineRange>,
}

impl OutputView<'_> {
    fn at(&self, cx: &Cx<'_>, log: &dyn OutputLog, secrets: &Secrets) -> Output {
        let options = ExcerptOptions {
            whole_chars: cx.limits().reply_chars * 3 / 4,
            chars: cx.limits().reply_chars * 3 / 4,
            line_chars: cx.limits().line_chars,
            head_lines: None,
            tail_lines: self.lines.and_then(LineRange::last),
        };
        if self.filter.is_none() && self.lines.is_none() {
            let (shown, masked) = excerpt(log, secrets, self.from..self.end, options);
            return Output {
                shown,
                notes: masked_note(masked).into_iter().collect(),
                left: Left::default(),
            };
        }
        let mut excerpt = Excerpt::new(options);
        let cancel = cx.cancel();
        let cancelled = || cancel.is_cancelled();
        let stop = || Deadline::new(cx.search_deadline(), &cancelled);
        let mut sieve = self.filter.map(|filter| Sieve::new(filter, stop(), u64::MAX));
        let mut number = 0;
        let masked = each_line(log, secrets, self.from..self.end, |line| {
            number = line.number;
            let wanted = self.lines.is_none_or(|lines| lines.contains(number));
            match &mut sieve {
                _ if !wanted => {}
                None => excerpt.cut_line(&line.text, line.missing),
                Some(sieve) => sieve.line(&line.text, &mut |line| excerpt.line(line)),
            }
            self.lines.is_none_or(|lines| !lines.is_past(number))
        });
        let left = sieve.map(|sieve| sieve.finish(&mut |line| excerpt.line(line)));
        let shown = excerpt.finish();
        let none = shown.lines == 0 && self.filter.is_none();
        let which = self.lines.filter(|_| none).map(|lines| lines.missing_note(number));
        let notes = which.into_iter().chain(masked_note(masked)).collect();
        Output { shown, notes, left: left.unwrap_or_default() }
    }
}

/// What is shown of an output, what to say of it, and which lines are not decided.
struct Output {
    shown: ExcerptShown,
    notes: Vec<String>,
    left: Left,
}

/// What a reply ends with.
struct Ending {
    waited: Waited,
    wait_for: WaitFor,
    port: Option<u16>,
    /// That of the sandbox, if there is one.
    network: Option<Network>,
    /// The outcome of making the first port reachable from outside.
    exposed: Option<Result<(), String>>,
    changes: String,
}

fn answer(
    job: &Job,
    now: &Snapshot,
    Output { shown, notes, left }: Output,
    cursor: u64,
    Ending { waited, wait_for, port, network, exposed, changes }: Ending,
) -> Reply {
    let mut text = shown.text;
    if text.is_empty() && notes.is_empty() {
        text.push_str("[no new output]\n");
    }
    let escaped = escape_note([text.as_str()]);
    let refused = job.refusals();
    let refusals = refusals::notes(&refused, &text, job.directory(), refusals::MAX_LINES);
    text.extend(left.notes().map(bracketed));
    text.extend(notes.iter().map(bracketed));
    text.extend(dropped_note(job, now).map(bracketed));
    text.extend(escaped.iter().map(|(note, _)| bracketed(note)));
    text.push_str(&bracketed(state(job, now)));
    text.extend(refusals.iter().map(bracketed));
    let what = match wait_for {
        WaitFor::Regex => "no line matched".to_owned(),
        WaitFor::Port => match port {
            Some(port) => format!("it does not listen on port {port}"),
            None => "it listens on no port".to_owned(),
        },
        WaitFor::Output => "there is no more output".to_owned(),
        WaitFor::Exit | WaitFor::None => "it still runs".to_owned(),
    };
    match &waited {
        Waited::Done => {}
        Waited::Ports(ports) => {
            text.push_str(&bracketed(listens_on(ports, network, exposed)));
        }
        Waited::EndedFirst => text.push_str(&bracketed(format!("it ended, and {what}"))),
        Waited::TimedOut => text.push_str(&bracketed(format!("the time is up, and {what}"))),
    }
    text.push_str(&changes);
    let reply = Reply::new(text)
        .with("bash_id", job.id())
        .with("status", now.status.name())
        .with("cursor", cursor)
        .with("lines", shown.lines)
        .with("undecided_lines", left.count())
        .with("truncated", shown.left_out > 0 || shown.has_cut_lines)
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

/// The port that a filter names.
fn port_number(filter: &str) -> Result<u16, Error> {
    filter.trim().parse().map_err(|_| {
        let filter = visible_name(filter.as_bytes());
        Error::invalid(format!("`{WAIT_FOR}` is port, and `filter` is {filter}, which is no port"))
            .hint("Give the number of the port as filter, or no filter for any port.")
    })
}

fn pattern(cx: &Cx<'_>, filter: &str) -> Result<Pattern, Error> {
    let wanted =
        PatternOptions { pattern: filter, literal: false, ignore_case: false, multiline: false };
    let cancel = cx.cancel();
    let cancelled = || cancel.is_cancelled();
    let stop = Deadline::new(cx.search_deadline(), &cancelled);
    let pattern = Pattern::new(wanted, &MatchingProcesses::of(cx), &stop)
        .map_err(|error| Error::invalid(format!("`filter`: {error}")))?;
    match pattern.understood() {
        PatternSyntax::AsText { why, column } => Err(Error::invalid(format!(
            "`filter` is no regular expression: {why}, at character {column}"
        ))
        .hint("Escape what is meant as it stands with a backslash.")),
        _ => Ok(pattern),
    }
}
