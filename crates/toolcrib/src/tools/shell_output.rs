//! What a command wrote, as replies show it: decoded as a whole, as a terminal would show it in the end, and
//! without what is secret in it.

use std::ops::Range;

use toolcrib_exec::Job;
use toolcrib_text::{
    Detector, Encoding, Excerpt, ExcerptOptions, LineCount, Masker, Secrets, Shown, Survey,
    Terminal, Transcoder, as_seen, visible,
};

use crate::notes::escaped;
use crate::words::counted;

/// What is read of a log at a time.
const CHUNK: usize = 1 << 20;

/// What tells an output's encoding: so much of its beginning, and of its end.
const SAMPLE: usize = 1 << 20;

/// Of a stretch that is longer than both together, so much of the beginning is looked through for errors,
/// and so much of the end; the lines between are counted.
const LOOKED_THROUGH: u64 = 4 << 20;
const LOOKED_AT_LAST: u64 = 1 << 20;

/// What is held of one line. No reply shows as much of it.
const MAX_LINE: usize = 64 << 10;

/// What the last line is looked for in.
const LAST_BYTES: u64 = 4 << 10;

/// So much before a stretch tells whether it begins in the middle of something secret.
const BEFORE_BYTES: u64 = 8 << 10;

/// An excerpt of a stretch of an output, and how many values in it were masked.
pub(super) fn excerpt(
    job: &Job,
    secrets: &Secrets,
    stretch: Range<u64>,
    options: ExcerptOptions,
) -> (Shown, usize) {
    let mut excerpt = Excerpt::new(options);
    let feed = |excerpt: &mut Excerpt, stretch| {
        each_line(job, secrets, stretch, |line| {
            excerpt.line(line);
            true
        })
    };
    if stretch.end - stretch.start <= LOOKED_THROUGH + LOOKED_AT_LAST {
        let masked = feed(&mut excerpt, stretch);
        return (excerpt.finish(), masked);
    }
    let middle = stretch.start + LOOKED_THROUGH..stretch.end - LOOKED_AT_LAST;
    let first = feed(&mut excerpt, stretch.start..middle.start);
    excerpt.skip(count_lines(job, middle.clone()));
    let last = feed(&mut excerpt, middle.end..stretch.end);
    (excerpt.finish(), first + last)
}

/// What to say of masked values.
pub(super) fn masked_note(masked: usize) -> Option<String> {
    let what = match masked {
        0 => return None,
        1 => "a value that looks secret is masked; files have it as it is".to_owned(),
        _ => format!("{masked} values that look secret are masked; files have them as they are"),
    };
    Some(what)
}

/// How many lines end in a stretch, of those that are kept.
fn count_lines(job: &Job, stretch: Range<u64>) -> u64 {
    let mut count = LineCount::new(b'\n');
    let mut at = stretch.start;
    while at < stretch.end {
        let room = usize::try_from(stretch.end - at).unwrap_or(CHUNK).min(CHUNK);
        let (from, bytes) = job.read(at, room);
        if bytes.is_empty() {
            break;
        }
        count.feed(&bytes);
        at = from + bytes.len() as u64;
    }
    count.lines()
}

/// Looks at each line of a stretch of an output, until one is not wanted. What is secret in them is masked
/// before anybody looks; answers how many values were.
pub(super) fn each_line(
    job: &Job,
    secrets: &Secrets,
    stretch: Range<u64>,
    mut each: impl FnMut(&str) -> bool,
) -> usize {
    // What came before is looked at for what goes on in the stretch, and shown with it: nothing, if that is empty.
    if stretch.is_empty() {
        return 0;
    }
    let mut masker = Masker::new(secrets);
    let start = stretch.start - look_back(job, stretch.start, &mut masker);
    let before = masker.masked();
    let mut each = |line: &str| each(&masker.line(line));
    each_line_of(job, start..stretch.end, &mut each);
    masker.masked() - before
}

/// Tells a masker what came before a stretch; answers how many bytes of that belong to something secret that
/// goes on in it.
fn look_back(job: &Job, start: u64, masker: &mut Masker<'_>) -> u64 {
    let (_, before) =
        job.read(start.saturating_sub(BEFORE_BYTES), start.min(BEFORE_BYTES) as usize);
    let whole = last_newline(&before).map_or(0, |newline| newline + 1);
    for line in visible(&before[..whole]).lines() {
        masker.line(line);
    }
    masker.unfinished(&before) as u64
}

fn each_line_of(job: &Job, stretch: Range<u64>, mut each: &mut impl FnMut(&str) -> bool) {
    let encoding = encoding(job, stretch.end);
    let mut at = stretch.start;
    let mut lines = Lines::new(encoding);
    while at < stretch.end {
        let room = usize::try_from(stretch.end - at).unwrap_or(CHUNK).min(CHUNK);
        let (from, bytes) = job.read(at, room);
        if from > at {
            let missing = counted(from - at, "byte");
            let old = std::mem::replace(&mut lines, Lines::new(encoding));
            if !old.finish(&mut each) || !each(&format!("[{missing} of output were not kept]")) {
                return;
            }
        }
        // It is shorter than it was said to be: what could be read is all there is.
        if bytes.is_empty() || !lines.feed(&bytes, &mut each) {
            break;
        }
        at = from + bytes.len() as u64;
    }
    lines.finish(&mut each);
}

/// The end of a stretch that may be shown while more is to come: not in the middle of a character, nor of what
/// may turn out to be secret.
pub(super) fn whole_characters(job: &Job, secrets: &Secrets, end: u64) -> u64 {
    let (_, before) = job.read(end.saturating_sub(BEFORE_BYTES), end.min(BEFORE_BYTES) as usize);
    let end = end - secrets.unfinished(&before) as u64;
    let (from, last) = job.read(end.saturating_sub(3), 3);
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
fn encoding(job: &Job, end: u64) -> Encoding {
    let (mut detector, mut survey) = (Detector::default(), Survey::default());
    let first = job.read(0, SAMPLE);
    let last_from = end.saturating_sub(SAMPLE as u64).max(SAMPLE as u64);
    let last = if last_from < end { job.read(last_from, SAMPLE) } else { (end, Vec::new()) };
    for (_, part) in [first, last] {
        detector.feed(&part);
        survey.feed(&part);
    }
    survey.finish();
    let found = detector.finish(&survey);
    // A few zeros among letters look like UTF-16, which no program here writes to a pipe.
    if found.unit_bytes() == 1 { found } else { Encoding::UTF_8 }
}

/// From bytes to lines.
struct Lines {
    transcoder: Transcoder,
    terminal: Terminal,
    /// What is seen of a line that has not ended.
    seen: Vec<u8>,
    /// Bytes of it that are not held.
    left_out: u64,
}

impl Lines {
    fn new(encoding: Encoding) -> Lines {
        let (transcoder, terminal) = (encoding.stream(), Terminal::default());
        Lines { transcoder, terminal, seen: Vec::new(), left_out: 0 }
    }

    fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(&str) -> bool) -> bool {
        let text = self.transcoder.feed(bytes, false);
        let before = self.seen.len();
        self.terminal.feed(&text, &mut self.seen);
        let new = self.seen.get(before..).unwrap_or_default();
        let (Some(first), Some(last)) = (first_newline(new), last_newline(new)) else {
            self.bound();
            return true;
        };
        let rest = self.seen.split_off(before + last + 1);
        let whole = std::mem::replace(&mut self.seen, rest);
        let left_out = std::mem::take(&mut self.left_out);
        self.bound();
        let (line, others) = whole.split_at(before + first + 1);
        show(line, left_out, each) && show(others, 0, each)
    }

    fn finish(mut self, each: &mut impl FnMut(&str) -> bool) -> bool {
        let text = self.transcoder.feed(&[], true).into_owned();
        self.terminal.feed(&text, &mut self.seen);
        self.terminal.finish(&mut self.seen);
        let first = first_newline(&self.seen).map_or(self.seen.len(), |newline| newline + 1);
        let (line, others) = self.seen.split_at(first);
        show(line, self.left_out, each) && show(others, 0, each)
    }

    /// A line may be as long as the output: only its beginning is held.
    fn bound(&mut self) {
        self.left_out += self.seen.len().saturating_sub(MAX_LINE) as u64;
        self.seen.truncate(MAX_LINE);
    }
}

/// Shows lines, the first of which may have had more to it.
fn show(lines: &[u8], left_out: u64, each: &mut impl FnMut(&str) -> bool) -> bool {
    let shown = visible(lines).lines().all(|line| each(&escaped(line)));
    let note = || format!("[{} of this line left out]", counted(left_out, "byte"));
    shown && (left_out == 0 || each(&note()))
}

fn first_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

fn last_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|&byte| byte == b'\n')
}
