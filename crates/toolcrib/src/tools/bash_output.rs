//! BashOutput: reads the output of a job, and waits for it.

mod line_filter;
mod line_range;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_exec::{Job, Network, Snapshot};
use toolcrib_policy::Access;
use toolcrib_search::{Deadline, Pattern, PatternOptions, PatternSyntax};
use toolcrib_text::{Excerpt, ExcerptOptions, ExcerptShown, Secrets, visible_name};

use self::line_filter::{LineFilter, UndecidedLines};
use self::line_range::LineRange;
use super::changed_files::CHANGED_FILES;
use super::changed_files::Changes;
use super::job_status_text::{ports_note, state};
use super::limit_notes::{LIMIT, LimitNote};
use super::shell_output::{
    OutputLog, dropped_note, each_line, excerpt, last_line, masked_note, whole_characters,
};
use crate::cancel_and_progress::Progress;
use crate::command_state::ReadPositions;
use crate::cx::Cx;
use crate::error::Error;
use crate::helper::MatchingProcesses;
use crate::message_names::{BASH, Name, SEPARATE_STREAMS, WAIT_FOR};
use crate::metadata_fields::MetadataField;
use crate::network::notes::{self, HOSTS};
use crate::output_notes::{bracketed, escape_note};
use crate::phrases::{counted, it_or_them};
use crate::reply::Reply;
use crate::sandbox_refusal_notes;
use crate::sandbox_refusal_notes::REFUSED;
use crate::tool::{Category, Hints, Tool};

/// Reads a job's new output and its state. `wait_for` waits first: for exit, more output, a line that `filter` (a
/// regex) matches, or a TCP port (`filter` can name it). `filter` and `lines` search all output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashOutput {
    /// The job.
    bash_id: String,
    /// A regex.
    filter: Option<String>,
    /// What to wait for.
    #[serde(default)]
    wait_for: WaitFor,
    /// In ms, up to 600000.
    #[serde(default = "default_timeout")]
    #[schemars(range(max = 600_000))]
    timeout: u64,
    /// From an earlier reply; 0 for all.
    cursor: Option<u64>,
    /// "100-200", or "-50".
    lines: Option<String>,
    /// stderr needs `separate_streams`.
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

const STREAM: Name<'_> = Name::field("BashOutput", "stream");

fn default_timeout() -> u64 {
    60_000
}

/// Interval between checks for cancellation, for a line or for a port.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time that a shim may take to report that all processes have exited.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_millis(200);

/// Interval between progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

const METADATA: &[MetadataField] = &[
    MetadataField::new("bash_id", "string", "always", "Id of the job."),
    MetadataField::new(
        "status",
        "string",
        "always",
        "`pending`, `running`, `completed`, `failed`, `killed` or `timeout`.",
    ),
    MetadataField::new("cursor", "integer", "always", "Position in the output, for the next call."),
    MetadataField::new("lines", "integer", "always", "Lines in the reply and omitted lines."),
    MetadataField::new(
        "undecided_lines",
        "integer",
        "always",
        "Lines that could not be matched within the limits.",
    ),
    MetadataField::new("truncated", "boolean", "always", "Whether the reply omits lines."),
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
    const LOWERED: &'static [&'static str] = &["timeout"];
    const METADATA: &'static [&'static [MetadataField]] =
        &[METADATA, LIMIT, REFUSED, HOSTS, CHANGED_FILES];

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
            return Err(Error::invalid(format!("`{WAIT_FOR}` is regex, but `filter` is missing"))
                .hint("Give the regular expression to wait for as filter."));
        }
        let errors = match self.stream {
            StreamName::Stderr => Some(job.errors().ok_or_else(|| no_separate_stderr(&job))?),
            StreamName::Stdout => None,
        };
        let stream = match &errors {
            Some(errors) => ReadStream { log: errors, is_errors: true },
            None => ReadStream { log: &*job, is_errors: false },
        };
        let mut read = cx.shell()?.read_positions(job.id());
        let remembered = if stream.is_errors { read.errors } else { read.output };
        // Without a cursor, a filter applies to all output; a wait applies to new output.
        let all = lines.is_some()
            || (filter.is_some() && self.cursor.is_none() && wait_for != WaitFor::Regex);
        let from = if all { 0 } else { self.cursor.unwrap_or(remembered) };
        let timeout = Duration::from_millis(self.timeout);
        let secrets = cx.secrets();
        let since = self.cursor.unwrap_or(remembered);
        let waiting =
            WaitCondition { wait_for, from: since, filter: filter.as_ref(), port, timeout };
        let waited = wait(cx, (&job, stream), &secrets, &waiting)?;
        let now = job.snapshot();
        if !now.status.is_running() {
            cx.shell()?.end_is_told(job.id());
        }
        let end = if now.closed {
            stream.written(&now)
        } else {
            whole_characters(stream.log, &secrets, stream.written(&now))
        };
        let view = OutputView { from: from.min(end), end, filter: filter.as_ref(), lines };
        let mut output = view.read(cx, stream.log, &secrets);
        cx.check_cancelled()?;
        if filter.is_none() && lines.is_none() && !cx.dry_run() {
            *if stream.is_errors { &mut read.errors } else { &mut read.output } = end;
            cx.shell()?.set_read_positions(job.id(), read);
        }
        if !stream.is_errors {
            output.notes.extend(unread_errors_note(&job, &now, read));
        }
        let limit = LimitNote::of(&job, &now, cx.command_limits(), &output.shown.text);
        output.notes.extend(limit.as_ref().map(LimitNote::text));
        let changes = changes(cx, &job, &now)?;
        let (network, changes_text) = (cx.network(), changes.text());
        let hosts = if cx.dry_run() { Vec::new() } else { cx.take_host_notes(&job) };
        output.notes.extend(notes::lines(&hosts));
        let exposed = match &waited {
            WaitResult::Ports(ports) => ports.first().and_then(|port| cx.exposed(*port)),
            _ => None,
        };
        let ending = Ending { waited, wait_for, port, network, exposed, changes: changes_text };
        let reply = build_reply(cx, (&job, &now), output, end, ending);
        let hosts = notes::facts(&hosts).map(|hosts| ("hosts", hosts)).into_iter().collect();
        let limit = limit.as_ref().map(LimitNote::fact).into_iter().collect();
        Ok(reply.with_all(changes.facts()).with_all(hosts).with_all(limit))
    }
}

/// The files that a job has changed, once all of its processes have exited. The shim reports that a moment after
/// the shell has ended.
fn changes(cx: &Cx<'_>, job: &Job, now: &Snapshot) -> Result<Changes, Error> {
    if !now.status.is_running() {
        job.wait(EXIT_REPORT_TIMEOUT, |now| now.all_exited);
    }
    Changes::of_job(cx, job)
}

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

/// The note about lines on a separate stderr that were not read.
fn unread_errors_note(job: &Job, now: &Snapshot, read: ReadPositions) -> Option<String> {
    let (errors, written) = job.errors().zip(now.errors_written)?;
    let read_to = read.errors.min(written);
    let complete = errors.newlines_before(written).saturating_sub(errors.newlines_before(read_to));
    let (_, last) = errors.read(written.saturating_sub(1).max(read_to), 1);
    let lines = complete + u64::from(last.first().is_some_and(|last| *last != b'\n'));
    (lines > 0).then(|| {
        let them = it_or_them(lines);
        format!("stderr: {}; {STREAM}: \"stderr\" shows {them}", counted(lines, "line"))
    })
}

fn no_separate_stderr(job: &Job) -> Error {
    let message = format!("the stderr of {} is part of its output", job.id());
    Error::invalid(message)
        .hint(format!("Omit {STREAM}. {BASH} with {SEPARATE_STREAMS} stores stderr apart."))
}

/// The condition to wait for.
struct WaitCondition<'a> {
    wait_for: WaitFor,
    from: u64,
    filter: Option<&'a Pattern>,
    port: Option<u16>,
    timeout: Duration,
}

/// The result of a wait.
enum WaitResult {
    /// The condition was met, or there was none.
    Done,
    Ports(Vec<u16>),
    /// The job ended before the condition was met.
    EndedFirst,
    TimedOut,
}

fn wait(
    cx: &Cx<'_>,
    (job, stream): (&Job, ReadStream<'_>),
    secrets: &Secrets,
    waiting: &WaitCondition<'_>,
) -> Result<WaitResult, Error> {
    let began = Instant::now();
    let (mut last_progress, mut searched_to) = (began, waiting.from);
    if waiting.wait_for == WaitFor::None {
        return Ok(WaitResult::Done);
    }
    loop {
        cx.check_cancelled()?;
        let now = job.snapshot();
        match waiting.wait_for {
            WaitFor::None => {}
            WaitFor::Exit => {}
            WaitFor::Output if stream.written(&now) > waiting.from => return Ok(WaitResult::Done),
            WaitFor::Output => {}
            WaitFor::Regex => {
                let found = waiting.filter.is_some_and(|filter| {
                    let end = began.checked_add(waiting.timeout).unwrap_or(began);
                    let cancel = cx.cancel();
                    let cancelled = || cancel.is_cancelled();
                    let line_filter = LineFilter::new(filter, Deadline::new(end, &cancelled), 1);
                    let end = stream.written(&now);
                    has_match(line_filter, stream.log, secrets, (&mut searched_to, end))
                });
                if found {
                    return Ok(WaitResult::Done);
                }
            }
            WaitFor::Port => {
                let mut ports = job.ports();
                ports.retain(|port| waiting.port.is_none_or(|wanted| *port == wanted));
                if !ports.is_empty() {
                    return Ok(WaitResult::Ports(ports));
                }
            }
        }
        let no_more = !now.status.is_running() && (now.closed || waiting.wait_for == WaitFor::Exit);
        if no_more || now.all_exited {
            let wanted = matches!(waiting.wait_for, WaitFor::Exit);
            return Ok(if wanted { WaitResult::Done } else { WaitResult::EndedFirst });
        }
        let remaining = waiting.timeout.saturating_sub(began.elapsed());
        if remaining.is_zero() {
            return Ok(WaitResult::TimedOut);
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            let line = last_line(job, secrets);
            cx.progress(Progress { done: began.elapsed().as_secs(), total: None, message: &line });
        }
        let changed = |then: &Snapshot| then.status != now.status || then.closed != now.closed;
        job.wait(remaining.min(POLL_INTERVAL), changed);
    }
}

/// Whether a line since `searched_to` matches, or may match. Complete lines are not examined again.
fn has_match(
    mut line_filter: LineFilter<'_>,
    log: &dyn OutputLog,
    secrets: &Secrets,
    (searched_to, end): (&mut u64, u64),
) -> bool {
    let mut found = false;
    each_line(log, secrets, *searched_to..end, |line| {
        line_filter.line(&line.text, &mut |_| found = true);
        !found
    });
    line_filter.finish(&mut |_| found = true);
    let (from, mut last) = log.read(end.saturating_sub(4096).max(*searched_to), 4096);
    // Output that came since was not examined.
    last.truncate(usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX));
    if let Some(newline) = last.iter().rposition(|&byte| byte == b'\n') {
        *searched_to = from + newline as u64 + 1;
    }
    found
}

/// The lines to show.
struct OutputView<'a> {
    from: u64,
    end: u64,
    filter: Option<&'a Pattern>,
    lines: Option<LineRange>,
}

impl OutputView<'_> {
    fn read(&self, cx: &Cx<'_>, log: &dyn OutputLog, secrets: &Secrets) -> Output {
        let options = ExcerptOptions {
            whole_chars: cx.limits().reply_chars * 3 / 4,
            chars: cx.limits().reply_chars * 3 / 4,
            line_chars: cx.limits().line_chars,
            head_lines: None,
            tail_lines: self.lines.and_then(LineRange::last),
            folds: false,
        };
        if self.filter.is_none() && self.lines.is_none() {
            let (shown, masked) = excerpt(log, secrets, self.from..self.end, options);
            return Output {
                shown,
                notes: masked_note(masked).into_iter().collect(),
                undecided: UndecidedLines::default(),
                is_filtered: false,
            };
        }
        let mut excerpt = Excerpt::new(options);
        let cancel = cx.cancel();
        let cancelled = || cancel.is_cancelled();
        let stop = || Deadline::new(cx.search_deadline(), &cancelled);
        let mut line_filter = self.filter.map(|filter| LineFilter::new(filter, stop(), u64::MAX));
        let mut number = 0;
        let masked = each_line(log, secrets, self.from..self.end, |line| {
            number = line.number;
            let wanted = self.lines.is_none_or(|lines| lines.contains(number));
            match &mut line_filter {
                _ if !wanted => {}
                None => excerpt.cut_line(&line.text, line.missing),
                Some(line_filter) => line_filter.line(&line.text, &mut |line| excerpt.line(line)),
            }
            self.lines.is_none_or(|lines| !lines.is_past(number))
        });
        let undecided =
            line_filter.map(|line_filter| line_filter.finish(&mut |line| excerpt.line(line)));
        let shown = excerpt.finish();
        let none = shown.lines == 0 && self.filter.is_none();
        let which = self.lines.filter(|_| none).map(|lines| lines.missing_note(number));
        let notes = which.into_iter().chain(masked_note(masked)).collect();
        let is_filtered = undecided.is_some();
        Output { shown, notes, undecided: undecided.unwrap_or_default(), is_filtered }
    }
}

/// The shown part of an output, its notes, and the undecided lines.
struct Output {
    shown: ExcerptShown,
    notes: Vec<String>,
    undecided: UndecidedLines,
    /// Whether only the lines that match a pattern are shown.
    is_filtered: bool,
}

/// The last lines of a reply.
struct Ending {
    waited: WaitResult,
    wait_for: WaitFor,
    port: Option<u16>,
    /// Network of the sandbox, if there is one.
    network: Option<Network>,
    /// The outcome of making the first port reachable from outside.
    exposed: Option<Result<(), String>>,
    changes: String,
}

fn build_reply(
    cx: &Cx<'_>,
    (job, now): (&Job, &Snapshot),
    Output { shown, notes, undecided, is_filtered }: Output,
    cursor: u64,
    Ending { waited, wait_for, port, network, exposed, changes }: Ending,
) -> Reply {
    let mut text = shown.text;
    if text.is_empty() && notes.is_empty() {
        text.push_str(if is_filtered { "[no line matches filter]\n" } else { "[no new output]\n" });
    }
    let escaped = escape_note([text.as_str()]);
    let refused = job.refusals();
    let refusals = sandbox_refusal_notes::notes(
        &refused,
        &text,
        job.directory(),
        sandbox_refusal_notes::MAX_LINES,
        (&cx.paths().settings, &cx.command_policy()),
    );
    text.extend(undecided.notes().map(bracketed));
    text.extend(notes.iter().map(bracketed));
    text.extend(dropped_note(job).map(bracketed));
    text.extend(escaped.iter().map(|(note, _)| bracketed(note)));
    text.push_str(&bracketed(state(job, now)));
    text.extend(refusals.iter().map(bracketed));
    let what = match wait_for {
        WaitFor::Regex => "no line matched".to_owned(),
        WaitFor::Port => match port {
            Some(port) => format!("it does not listen on port {port}"),
            None => "it does not listen on any port".to_owned(),
        },
        WaitFor::Output => "there is no new output".to_owned(),
        WaitFor::Exit | WaitFor::None => "it still runs".to_owned(),
    };
    match &waited {
        WaitResult::Done => {}
        WaitResult::Ports(ports) => {
            text.push_str(&bracketed(ports_note(ports, network, exposed)));
        }
        WaitResult::EndedFirst => text.push_str(&bracketed(format!("it ended, and {what}"))),
        WaitResult::TimedOut => text.push_str(&bracketed(format!("timed out: {what}"))),
    }
    text.push_str(&changes);
    let reply = Reply::new(text)
        .with("bash_id", job.id())
        .with("status", now.status.name())
        .with("cursor", cursor)
        .with("lines", shown.lines)
        .with("undecided_lines", undecided.count())
        .with("truncated", shown.left_out > 0 || shown.has_cut_lines)
        .with("dropped_bytes", now.gap.end - now.gap.start)
        .with("timed_out", matches!(waited, WaitResult::TimedOut));
    let reply = match now.ended.as_ref().map(|ended| ended.exit) {
        Some(toolcrib_exec::Exit::Code(code)) => reply.with("exit_code", code),
        Some(toolcrib_exec::Exit::Signal(signal)) => reply.with("signal", signal),
        None => reply,
    };
    let reply = match sandbox_refusal_notes::facts(&refused) {
        Some(refused) => reply.with("refused", refused),
        None => reply,
    };
    let reply = match escaped {
        Some((_, lines)) => reply.with("escaped_lines", lines),
        None => reply,
    };
    match waited {
        WaitResult::Ports(ports) => reply.with("ports", ports),
        _ => reply,
    }
}

/// Parses the port in a filter.
fn port_number(filter: &str) -> Result<u16, Error> {
    filter.trim().parse().map_err(|_| {
        let filter = visible_name(filter.as_bytes());
        Error::invalid(format!(
            "`{WAIT_FOR}` is port, but `filter` is {filter}, which is not a port"
        ))
        .hint("Give a port number as filter, or omit filter for any port.")
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
            "`filter` is not a regular expression: {why}, at character {column}"
        ))
        .hint("Escape literal characters with a backslash.")),
        _ => Ok(pattern),
    }
}
