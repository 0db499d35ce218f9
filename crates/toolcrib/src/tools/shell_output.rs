//! Output of commands as replies show it: decoded, in the final state of a terminal, with secrets masked.

use std::borrow::Cow;
use std::ops::Range;

use toolcrib_exec::{ErrorStream, Job};
use toolcrib_text::{
    Encoding, Excerpt, ExcerptOptions, ExcerptShown, Masker, Secrets, Terminal, TextProperties,
    Transcoder, as_seen, output_encoding, visible,
};

use crate::output_notes::escaped;
use crate::phrases::counted;

/// Bytes read from a log at a time.
const CHUNK: usize = 1 << 20;

/// Bytes of the beginning and of the end from which the encoding is detected.
const SAMPLE: usize = 1 << 20;

/// If a range is longer than both together, errors are searched in this many bytes of its beginning and of its end.
/// The lines between are only counted.
const SEARCHED_START_BYTES: u64 = 4 << 20;
const SEARCHED_END_BYTES: u64 = 1 << 20;

/// Bytes held of one line: of its beginning, and of its end. No reply shows more of a line.
const MAX_LINE: usize = 64 << 10;
const MAX_LINE_END: usize = 16 << 10;

/// Bytes from which binary output is recognized.
const BINARY_SAMPLE: usize = 8 << 10;

/// Characters of a byte that is shown as an escape.
const ESCAPE_CHARS: usize = 4;

/// Binary output of at most this many bytes is always shown whole.
const SMALL_BINARY_BYTES: usize = 100;

/// Bytes in which the last line is searched.
const LAST_BYTES: u64 = 4 << 10;

/// Bytes before a range that are examined for a secret that continues in it.
const LOOK_BACK_BYTES: u64 = 8 << 10;

/// The stored bytes of an output.
pub(super) trait OutputLog {
    /// At most `max` bytes from `from` on, and the position of the first: dropped bytes are skipped.
    fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>);
    /// The number of newlines before a position.
    fn newlines_before(&self, position: u64) -> u64;
}

impl OutputLog for Job {
    fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>) {
        Job::read(self, from, max)
    }

    fn newlines_before(&self, position: u64) -> u64 {
        Job::newlines_before(self, position)
    }
}

impl OutputLog for ErrorStream<'_> {
    fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>) {
        ErrorStream::read(*self, from, max)
    }

    fn newlines_before(&self, position: u64) -> u64 {
        ErrorStream::newlines_before(*self, position)
    }
}

/// Whether an excerpt shows only the beginning of an output, because the output is binary and no lines were chosen.
pub(super) fn shows_binary_beginning(log: &dyn OutputLog, options: &ExcerptOptions) -> bool {
    options.head_lines.is_none() && options.tail_lines.is_none() && looks_binary(log)
}

/// Whether an output is not text, and too long to be shown whole.
fn looks_binary(log: &dyn OutputLog) -> bool {
    let (_, beginning) = log.read(0, BINARY_SAMPLE);
    let properties = TextProperties::of(&beginning);
    properties.looks_binary()
        && has_raw_bytes(&properties, &beginning)
        && beginning.len() > SMALL_BINARY_BYTES
}

/// Whether an output contains data that is not meant for a terminal.
fn is_raw(log: &dyn OutputLog) -> bool {
    let (_, beginning) = log.read(0, BINARY_SAMPLE);
    has_raw_bytes(&TextProperties::of(&beginning), &beginning)
}

/// Whether bytes contain both invalid UTF-8 and controls that terminals ignore. Text in another encoding has no such
/// controls, and text with NULs, such as file names from `find -print0`, is UTF-8.
fn has_raw_bytes(properties: &TextProperties, bytes: &[u8]) -> bool {
    let is_ignored = |byte: &u8| matches!(byte, 0..=0x06 | 0x0e..=0x1a | 0x1c..=0x1f);
    properties.invalid_utf8 > 0 && bytes.iter().any(is_ignored)
}

/// A line of output.
pub(super) struct OutputLine<'a> {
    /// Its number among the lines of the range, dropped lines included.
    pub(super) number: u64,
    /// Number of dropped lines before it.
    pub(super) dropped_before: u64,
    pub(super) text: Cow<'a, str>,
    /// Position and number of missing characters.
    pub(super) missing: Option<(usize, u64)>,
}

impl OutputLine<'_> {
    /// Adds it to an excerpt.
    pub(super) fn show_in(&self, excerpt: &mut Excerpt) {
        if self.dropped_before > 0 {
            excerpt.skip(self.dropped_before);
        }
        excerpt.cut_line(&self.text, self.missing);
    }
}

/// Makes an excerpt of a range of output: of binary output, its beginning. Returns the number of masked values, too.
pub(super) fn excerpt(
    log: &dyn OutputLog,
    secrets: &Secrets,
    stretch: Range<u64>,
    options: ExcerptOptions,
) -> (ExcerptShown, usize) {
    if shows_binary_beginning(log, &options) {
        return binary_beginning(log, secrets, stretch, options.chars);
    }
    let mut excerpt = Excerpt::new(options);
    let feed = |excerpt: &mut Excerpt, stretch| {
        each_line(log, secrets, stretch, |line| {
            line.show_in(excerpt);
            true
        })
    };
    if stretch.end - stretch.start <= SEARCHED_START_BYTES + SEARCHED_END_BYTES {
        let masked = feed(&mut excerpt, stretch);
        return (excerpt.finish(), masked);
    }
    let middle = stretch.start + SEARCHED_START_BYTES..stretch.end - SEARCHED_END_BYTES;
    let first = feed(&mut excerpt, stretch.start..middle.start);
    let lines = log.newlines_before(middle.end).saturating_sub(log.newlines_before(middle.start));
    // A partly shown line ends in the middle.
    let after_a_part = log.read(middle.start - 1, 1).1 != b"\n";
    excerpt.skip(lines.saturating_sub(u64::from(after_a_part)));
    let last = feed(&mut excerpt, middle.end..stretch.end);
    (excerpt.finish(), first + last)
}

/// The first bytes of a range of binary output, and the number of the others.
fn binary_beginning(
    log: &dyn OutputLog,
    secrets: &Secrets,
    stretch: Range<u64>,
    chars: usize,
) -> (ExcerptShown, usize) {
    let whole = stretch.end - stretch.start;
    let bytes = whole.min((chars / ESCAPE_CHARS).max(SMALL_BINARY_BYTES) as u64);
    let (mut text, mut shown_lines) = (String::new(), 0);
    let masked = each_line(log, secrets, stretch.start..stretch.start + bytes, |line| {
        text += &line.text;
        text.push('\n');
        shown_lines += 1;
        true
    });
    let newlines =
        |to: u64| log.newlines_before(to).saturating_sub(log.newlines_before(stretch.start));
    let is_terminated = log.read(stretch.end.saturating_sub(1), 1).1 == b"\n";
    let lines = newlines(stretch.end) + u64::from(!is_terminated);
    let has_cut_lines = bytes < whole;
    if has_cut_lines {
        text.truncate(text.trim_end_matches('\n').len());
        text += &format!("…[+{}]\n", counted(whole - bytes, "byte"));
    }
    let left_out = lines.saturating_sub(shown_lines);
    (ExcerptShown { text, lines, left_out, has_cut_lines }, masked)
}

/// The note about dropped output. A command that runs goes on writing, so it is about the output as it is now.
pub(super) fn dropped_note(job: &Job) -> Option<String> {
    let kept = job.kept_output()?;
    Some(format!(
        "{} of output were dropped; the first {} and the last {} are kept",
        counted(kept.dropped, "byte"),
        counted(kept.first_lines, "line"),
        counted(kept.last_lines, "line")
    ))
}

/// The note about masked values.
pub(super) fn masked_note(masked: usize) -> Option<String> {
    let what = match masked {
        0 => return None,
        1 => "a value that looks secret is masked; files contain it unmasked".to_owned(),
        _ => format!("{masked} values that look secret are masked; files contain them unmasked"),
    };
    Some(what)
}

/// Calls `each` with the lines of a range until it returns false. Secrets are masked first. Returns the number of
/// masked values.
pub(super) fn each_line(
    log: &dyn OutputLog,
    secrets: &Secrets,
    stretch: Range<u64>,
    mut each: impl FnMut(&OutputLine<'_>) -> bool,
) -> usize {
    // An empty range must not show the secret that may continue at its start.
    if stretch.is_empty() {
        return 0;
    }
    let mut masker = Masker::new(secrets);
    let start = stretch.start - look_back(log, stretch.start, &mut masker);
    let before = masker.masked();
    let mut numbers = Numbers::default();
    let mut each = |seen: OutputPiece<'_>| match seen {
        OutputPiece::Line { begin, missing: 0, .. } => {
            let line = escaped(begin);
            each(&numbers.next(masker.line(&line), None))
        }
        OutputPiece::Line { begin, missing, end } => {
            let mut text = masker.line(&escaped(begin)).into_owned();
            let at = text.len();
            text += &masker.line(end);
            each(&numbers.next(text.into(), Some((at, missing))))
        }
        OutputPiece::Dropped { lines, after_a_part } => {
            numbers.skip(lines.saturating_sub(u64::from(after_a_part)));
            true
        }
    };
    each_piece(log, start..stretch.end, &mut each);
    masker.masked() - before
}

/// Feeds the bytes before a range to a masker. Returns how many of them belong to a secret that continues in the
/// range.
fn look_back(log: &dyn OutputLog, start: u64, masker: &mut Masker<'_>) -> u64 {
    let (_, before) =
        log.read(start.saturating_sub(LOOK_BACK_BYTES), start.min(LOOK_BACK_BYTES) as usize);
    let whole = last_newline(&before).map_or(0, |newline| newline + 1);
    for line in visible(&before[..whole]).lines() {
        masker.line(line);
    }
    masker.unfinished(&before) as u64
}

/// A piece of output.
enum OutputPiece<'a> {
    /// A line. A long one has a beginning, an end, and a number of missing characters between them.
    Line { begin: &'a str, missing: u64, end: &'a str },
    /// Dropped lines, and whether the line before them was shown in part.
    Dropped { lines: u64, after_a_part: bool },
}

#[derive(Default)]
struct Numbers {
    last: u64,
    dropped: u64,
}

impl Numbers {
    fn next<'a>(&mut self, text: Cow<'a, str>, missing: Option<(usize, u64)>) -> OutputLine<'a> {
        self.last += 1;
        let dropped_before = std::mem::take(&mut self.dropped);
        OutputLine { number: self.last, dropped_before, text, missing }
    }

    fn skip(&mut self, lines: u64) {
        self.last += lines;
        self.dropped += lines;
    }
}

fn each_piece(
    log: &dyn OutputLog,
    stretch: Range<u64>,
    mut each: &mut impl FnMut(OutputPiece<'_>) -> bool,
) {
    let encoding = (!is_raw(log)).then(|| encoding(log, stretch.end));
    let new_lines = || encoding.map_or_else(Lines::raw, Lines::new);
    let mut at = stretch.start;
    let mut newlines = log.newlines_before(at);
    let mut lines = new_lines();
    while at < stretch.end {
        let room = usize::try_from(stretch.end - at).unwrap_or(CHUNK).min(CHUNK);
        let (from, bytes) = log.read(at, room);
        if from > at {
            let before = log.newlines_before(from);
            let dropped = before.saturating_sub(newlines);
            newlines = before;
            let old = std::mem::replace(&mut lines, new_lines());
            let after_a_part = old.has_begun();
            if !old.finish(&mut each)
                || !each(OutputPiece::Dropped { lines: dropped, after_a_part })
            {
                return;
            }
        }
        // The log is shorter than reported.
        if bytes.is_empty() || !lines.feed(&bytes, &mut each) {
            break;
        }
        newlines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        at = from + bytes.len() as u64;
    }
    lines.finish(&mut each);
}

/// The end of the output that may be shown while more is to come: not within a character, and not within a possible
/// secret.
pub(super) fn whole_characters(log: &dyn OutputLog, secrets: &Secrets, end: u64) -> u64 {
    let (_, before) =
        log.read(end.saturating_sub(LOOK_BACK_BYTES), end.min(LOOK_BACK_BYTES) as usize);
    let end = end - secrets.unfinished(&before) as u64;
    let (from, last) = log.read(end.saturating_sub(3), 3);
    let unfinished = last.utf8_chunks().last().map_or(0, |chunk| {
        let invalid = chunk.invalid();
        let begun = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if begun { invalid.len() } else { 0 }
    });
    from + (last.len() - unfinished) as u64
}

/// The last line that is not blank, for progress reports.
pub(super) fn last_line(job: &Job, secrets: &Secrets) -> String {
    let written = whole_characters(job, secrets, job.snapshot().written);
    let (_, bytes) = job.read(written.saturating_sub(LAST_BYTES), written.min(LAST_BYTES) as usize);
    let seen = visible(&as_seen(&bytes));
    let seen = secrets.mask(&seen);
    seen.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

/// Detects the encoding of an output from its beginning and its end.
fn encoding(log: &dyn OutputLog, end: u64) -> Encoding {
    let (_, first) = log.read(0, SAMPLE);
    let last_from = end.saturating_sub(SAMPLE as u64).max(SAMPLE as u64);
    let last = if last_from < end { log.read(last_from, SAMPLE).1 } else { Vec::new() };
    output_encoding(&[&first, &last])
}

/// Converts bytes to lines.
struct Lines {
    transcoder: Transcoder,
    /// `None` for binary output, in which `\r` and `\b` do not move a cursor.
    terminal: Option<Terminal>,
    /// Lines not yet passed on; of the last line, its beginning.
    seen: Vec<u8>,
    /// The end of the last line, if it is long.
    end: Vec<u8>,
    /// Number of characters dropped between the two.
    missing: u64,
    begun: bool,
}

impl Lines {
    fn new(encoding: Encoding) -> Lines {
        Lines {
            transcoder: encoding.stream(),
            terminal: Some(Terminal::default()),
            seen: Vec::new(),
            end: Vec::new(),
            missing: 0,
            begun: false,
        }
    }

    /// For binary output.
    fn raw() -> Lines {
        Lines { terminal: None, ..Lines::new(Encoding::UTF_8) }
    }

    fn has_begun(&self) -> bool {
        self.begun
    }

    fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(OutputPiece<'_>) -> bool) -> bool {
        self.begun = bytes.last().map_or(self.begun, |&last| last != b'\n');
        let text = self.transcoder.feed(bytes, false);
        let Some(terminal) = &mut self.terminal else { return self.take(&text, each) };
        let mut new = Vec::new();
        terminal.feed(&text, &mut new);
        self.take(&new, each)
    }

    fn finish(mut self, each: &mut impl FnMut(OutputPiece<'_>) -> bool) -> bool {
        let text = self.transcoder.feed(&[], true).into_owned();
        let mut new = Vec::new();
        if let Some(mut terminal) = self.terminal.take() {
            terminal.feed(&text, &mut new);
            terminal.finish(&mut new);
        }
        self.take(&new, each) && (self.seen.is_empty() || self.show_last(each))
    }

    fn take(&mut self, mut new: &[u8], each: &mut impl FnMut(OutputPiece<'_>) -> bool) -> bool {
        while let Some(newline) = first_newline(new) {
            // The first line completes the held one; complete lines after it are passed on without copying.
            if self.seen.is_empty() && newline < MAX_LINE {
                let whole = last_newline(new).unwrap_or(newline);
                let long =
                    new[..whole].split(|&byte| byte == b'\n').position(|l| l.len() >= MAX_LINE);
                if long.is_none() {
                    if !show_lines(&new[..=whole], each) {
                        return false;
                    }
                    new = &new[whole + 1..];
                    break;
                }
            }
            self.hold(&new[..newline]);
            if !self.show_last(each) {
                return false;
            }
            new = &new[newline + 1..];
        }
        self.hold(new);
        true
    }

    /// A line may be as long as the whole output, so only its beginning and its end are held.
    fn hold(&mut self, more: &[u8]) {
        let (begin, end) = more.split_at(more.len().min(MAX_LINE.saturating_sub(self.seen.len())));
        self.seen.extend_from_slice(begin);
        self.end.extend_from_slice(end);
        if let Some(over) = self.end.len().checked_sub(MAX_LINE_END).filter(|&over| over > 0) {
            let over = boundary(&self.end, over);
            self.missing +=
                self.end[..over].iter().filter(|byte| !is_continuation(**byte)).count() as u64;
            self.end.drain(..over);
        }
    }

    fn show_last(&mut self, each: &mut impl FnMut(OutputPiece<'_>) -> bool) -> bool {
        let (seen, end) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.end));
        let missing = std::mem::take(&mut self.missing);
        if missing == 0 {
            let line = [seen, end].concat();
            return each(OutputPiece::Line { begin: &visible(&line), missing: 0, end: "" });
        }
        each(OutputPiece::Line { begin: &visible(&seen), missing, end: &visible(&end) })
    }
}

fn show_lines(lines: &[u8], each: &mut impl FnMut(OutputPiece<'_>) -> bool) -> bool {
    visible(lines).lines().all(|line| each(OutputPiece::Line { begin: line, missing: 0, end: "" }))
}

/// The next character boundary.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take(3).take_while(|&&byte| is_continuation(byte)).count()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn first_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

fn last_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|&byte| byte == b'\n')
}
