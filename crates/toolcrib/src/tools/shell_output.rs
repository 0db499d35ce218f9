//! What a command wrote, as replies show it: decoded as a whole, as a terminal would show it in the end, and
//! without what is secret in it.

use std::borrow::Cow;
use std::ops::Range;

use toolcrib_exec::{ErrorStream, Job, Snapshot};
use toolcrib_text::{
    Encoding, Excerpt, ExcerptOptions, ExcerptShown, Masker, Secrets, Terminal, TextProperties,
    Transcoder, as_seen, output_encoding, visible,
};

use crate::output_notes::escaped;
use crate::phrases::counted;

/// What is read of a log at a time.
const CHUNK: usize = 1 << 20;

/// What tells an output's encoding: so much of its beginning, and of its end.
const SAMPLE: usize = 1 << 20;

/// Of a stretch that is longer than both together, so much of the beginning is looked through for errors,
/// and so much of the end; the lines between are counted.
const LOOKED_THROUGH: u64 = 4 << 20;
const LOOKED_AT_LAST: u64 = 1 << 20;

/// What is held of one line: of its beginning, and of its end. No reply shows as much of it.
const MAX_LINE: usize = 64 << 10;
const MAX_LINE_END: usize = 16 << 10;

/// Bytes from which binary output is recognized.
const BINARY_SAMPLE: usize = 8 << 10;

/// What the last line is looked for in.
const LAST_BYTES: u64 = 4 << 10;

/// So much before a stretch tells whether it begins in the middle of something secret.
const BEFORE_BYTES: u64 = 8 << 10;

/// The stored bytes of an output.
pub(super) trait OutputLog {
    /// At most `max` bytes from `from` on, and the position of the first: dropped bytes are skipped.
    fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>);
    /// The number of line ends before a position.
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

/// Whether the beginning of an output is not text.
pub(super) fn looks_binary(log: &dyn OutputLog) -> bool {
    let (_, beginning) = log.read(0, BINARY_SAMPLE);
    let properties = TextProperties::of(&beginning);
    properties.looks_binary() && properties.invalid_utf8 > 0
}

/// A line of an output as it is seen.
pub(super) struct OutputLine<'a> {
    /// Its number among the lines of the stretch, those that were dropped among them.
    pub(super) number: u64,
    /// Lines before it that were dropped.
    pub(super) dropped_before: u64,
    pub(super) text: Cow<'a, str>,
    /// Where characters of it are missing, and how many.
    pub(super) missing: Option<(usize, u64)>,
}

impl OutputLine<'_> {
    /// Hands it to an excerpt.
    pub(super) fn show_in(&self, excerpt: &mut Excerpt) {
        if self.dropped_before > 0 {
            excerpt.skip(self.dropped_before);
        }
        excerpt.cut_line(&self.text, self.missing);
    }
}

/// An excerpt of a stretch of an output, and how many values in it were masked.
pub(super) fn excerpt(
    log: &dyn OutputLog,
    secrets: &Secrets,
    stretch: Range<u64>,
    options: ExcerptOptions,
) -> (ExcerptShown, usize) {
    let mut excerpt = Excerpt::new(options);
    let feed = |excerpt: &mut Excerpt, stretch| {
        each_line(log, secrets, stretch, |line| {
            line.show_in(excerpt);
            true
        })
    };
    if stretch.end - stretch.start <= LOOKED_THROUGH + LOOKED_AT_LAST {
        let masked = feed(&mut excerpt, stretch);
        return (excerpt.finish(), masked);
    }
    let middle = stretch.start + LOOKED_THROUGH..stretch.end - LOOKED_AT_LAST;
    let first = feed(&mut excerpt, stretch.start..middle.start);
    let lines = log.newlines_before(middle.end).saturating_sub(log.newlines_before(middle.start));
    // A line that is shown in part ends in the middle.
    let after_a_part = log.read(middle.start - 1, 1).1 != b"\n";
    excerpt.skip(lines.saturating_sub(u64::from(after_a_part)));
    let last = feed(&mut excerpt, middle.end..stretch.end);
    (excerpt.finish(), first + last)
}

/// What to say of output that was dropped.
pub(super) fn dropped_note(job: &Job, now: &Snapshot) -> Option<String> {
    let gap = &now.gap;
    if gap.is_empty() {
        return None;
    }
    let first = job.newlines_before(gap.start);
    let last = job.newlines_before(now.written).saturating_sub(job.newlines_before(gap.end));
    Some(format!(
        "{} of output were dropped; the first {} and the last {} are kept",
        counted(gap.end - gap.start, "byte"),
        counted(first, "line"),
        counted(last, "line")
    ))
}

/// What to say of masked values.
pub(super) fn masked_note(masked: usize) -> Option<String> {
    let what = match masked {
        0 => return None,
        1 => "a value that looks secret is masked; files contain it unmasked".to_owned(),
        _ => format!("{masked} values that look secret are masked; files contain them unmasked"),
    };
    Some(what)
}

/// Looks at each line of a stretch of an output, until one is not wanted. What is secret in them is masked
/// before anybody looks; answers how many values were.
pub(super) fn each_line(
    log: &dyn OutputLog,
    secrets: &Secrets,
    stretch: Range<u64>,
    mut each: impl FnMut(&OutputLine<'_>) -> bool,
) -> usize {
    // What came before is looked at for what goes on in the stretch, and shown with it: nothing, if that is empty.
    if stretch.is_empty() {
        return 0;
    }
    let mut masker = Masker::new(secrets);
    let start = stretch.start - look_back(log, stretch.start, &mut masker);
    let before = masker.masked();
    let mut numbers = Numbers::default();
    let mut each = |seen: SeenLine<'_>| match seen {
        SeenLine::Line { begin, missing: 0, .. } => {
            let line = escaped(begin);
            each(&numbers.next(masker.line(&line), None))
        }
        SeenLine::Line { begin, missing, end } => {
            let mut text = masker.line(&escaped(begin)).into_owned();
            let at = text.len();
            text += &masker.line(end);
            each(&numbers.next(text.into(), Some((at, missing))))
        }
        SeenLine::Dropped { lines, after_a_part } => {
            numbers.skip(lines.saturating_sub(u64::from(after_a_part)));
            true
        }
    };
    each_line_of(log, start..stretch.end, &mut each);
    masker.masked() - before
}

/// Tells a masker what came before a stretch; answers how many bytes of that belong to something secret that
/// goes on in it.
fn look_back(log: &dyn OutputLog, start: u64, masker: &mut Masker<'_>) -> u64 {
    let (_, before) =
        log.read(start.saturating_sub(BEFORE_BYTES), start.min(BEFORE_BYTES) as usize);
    let whole = last_newline(&before).map_or(0, |newline| newline + 1);
    for line in visible(&before[..whole]).lines() {
        masker.line(line);
    }
    masker.unfinished(&before) as u64
}

/// What is seen of an output.
enum SeenLine<'a> {
    /// A line; of a long one its beginning, its end, and how many characters are missing between.
    Line { begin: &'a str, missing: u64, end: &'a str },
    /// Lines that were dropped, and whether the one before them was shown in part.
    Dropped { lines: u64, after_a_part: bool },
}

/// Counts lines.
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

fn each_line_of(
    log: &dyn OutputLog,
    stretch: Range<u64>,
    mut each: &mut impl FnMut(SeenLine<'_>) -> bool,
) {
    let encoding = encoding(log, stretch.end);
    let mut at = stretch.start;
    let mut newlines = log.newlines_before(at);
    let mut lines = Lines::new(encoding);
    while at < stretch.end {
        let room = usize::try_from(stretch.end - at).unwrap_or(CHUNK).min(CHUNK);
        let (from, bytes) = log.read(at, room);
        if from > at {
            let before = log.newlines_before(from);
            let dropped = before.saturating_sub(newlines);
            newlines = before;
            let old = std::mem::replace(&mut lines, Lines::new(encoding));
            let after_a_part = old.has_begun();
            if !old.finish(&mut each) || !each(SeenLine::Dropped { lines: dropped, after_a_part }) {
                return;
            }
        }
        // It is shorter than it was said to be: what could be read is all there is.
        if bytes.is_empty() || !lines.feed(&bytes, &mut each) {
            break;
        }
        newlines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        at = from + bytes.len() as u64;
    }
    lines.finish(&mut each);
}

/// The end of a stretch that may be shown while more is to come: not in the middle of a character, nor of what
/// may turn out to be secret.
pub(super) fn whole_characters(log: &dyn OutputLog, secrets: &Secrets, end: u64) -> u64 {
    let (_, before) = log.read(end.saturating_sub(BEFORE_BYTES), end.min(BEFORE_BYTES) as usize);
    let end = end - secrets.unfinished(&before) as u64;
    let (from, last) = log.read(end.saturating_sub(3), 3);
    let unfinished = last.utf8_chunks().last().map_or(0, |chunk| {
        let invalid = chunk.invalid();
        let begun = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if begun { invalid.len() } else { 0 }
    });
    from + (last.len() - unfinished) as u64
}

/// The last line that says something, for whoever waits.
pub(super) fn last_line(job: &Job, secrets: &Secrets) -> String {
    let written = whole_characters(job, secrets, job.snapshot().written);
    let (_, bytes) = job.read(written.saturating_sub(LAST_BYTES), written.min(LAST_BYTES) as usize);
    let seen = visible(&as_seen(&bytes));
    let seen = secrets.mask(&seen);
    seen.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

/// In which encoding an output is. That of its beginning and its end is that of all of it.
fn encoding(log: &dyn OutputLog, end: u64) -> Encoding {
    let (_, first) = log.read(0, SAMPLE);
    let last_from = end.saturating_sub(SAMPLE as u64).max(SAMPLE as u64);
    let last = if last_from < end { log.read(last_from, SAMPLE).1 } else { Vec::new() };
    output_encoding(&[&first, &last])
}

/// From bytes to lines.
struct Lines {
    transcoder: Transcoder,
    terminal: Terminal,
    /// What is seen of lines that are not shown yet; of the last, its beginning.
    seen: Vec<u8>,
    /// What follows of the last line, if it is long: the last of it.
    end: Vec<u8>,
    /// Characters between the two that are not held.
    missing: u64,
    begun: bool,
}

impl Lines {
    fn new(encoding: Encoding) -> Lines {
        Lines {
            transcoder: encoding.stream(),
            terminal: Terminal::default(),
            seen: Vec::new(),
            end: Vec::new(),
            missing: 0,
            begun: false,
        }
    }

    /// Whether a line has begun that has not ended.
    fn has_begun(&self) -> bool {
        self.begun
    }

    fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(SeenLine<'_>) -> bool) -> bool {
        self.begun = bytes.last().map_or(self.begun, |&last| last != b'\n');
        let text = self.transcoder.feed(bytes, false);
        let mut new = Vec::new();
        self.terminal.feed(&text, &mut new);
        self.take(&new, each)
    }

    fn finish(mut self, each: &mut impl FnMut(SeenLine<'_>) -> bool) -> bool {
        let text = self.transcoder.feed(&[], true).into_owned();
        let mut new = Vec::new();
        self.terminal.feed(&text, &mut new);
        let terminal = std::mem::take(&mut self.terminal);
        terminal.finish(&mut new);
        self.take(&new, each) && (self.seen.is_empty() || self.show_last(each))
    }

    fn take(&mut self, mut new: &[u8], each: &mut impl FnMut(SeenLine<'_>) -> bool) -> bool {
        while let Some(newline) = first_newline(new) {
            // The first line ends what is held; those after it are shown without being copied.
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

    /// A line may be as long as the output: its beginning and its end are held.
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

    fn show_last(&mut self, each: &mut impl FnMut(SeenLine<'_>) -> bool) -> bool {
        let (seen, end) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.end));
        let missing = std::mem::take(&mut self.missing);
        if missing == 0 {
            let line = [seen, end].concat();
            return each(SeenLine::Line { begin: &visible(&line), missing: 0, end: "" });
        }
        each(SeenLine::Line { begin: &visible(&seen), missing, end: &visible(&end) })
    }
}

/// Shows whole lines.
fn show_lines(lines: &[u8], each: &mut impl FnMut(SeenLine<'_>) -> bool) -> bool {
    visible(lines).lines().all(|line| each(SeenLine::Line { begin: line, missing: 0, end: "" }))
}

/// The next place where a character begins.
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
