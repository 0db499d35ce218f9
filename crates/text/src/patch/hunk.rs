//! A hunk: its header and its lines.

use super::unfenced_lines::{PatchLine, UnfencedLines};
use super::{PatchError, envelope};

/// Consecutive lines of a file, and their change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The line of the patch, from 1, at which it begins.
    pub line: usize,
    /// Its header. Empty if it has none.
    pub header: &'a str,
    /// Number of lines of the file before it, by its header. A hint.
    pub before: Option<usize>,
    /// Number of lines of the new file before it, by its header.
    pub before_new: Option<usize>,
    /// Lines of the file that precede it, in order.
    pub anchors: Vec<&'a str>,
    /// Its lines.
    pub lines: Vec<HunkLine<'a>>,
    /// It claims to be at the end of the file.
    pub at_end: bool,
    /// It only adds lines and gives no position. They go to the end of the file.
    pub appends: bool,
    /// Its last old line has no newline.
    pub old_unended: bool,
    /// Its last new line has no newline.
    pub new_unended: bool,
}

/// A line of a hunk, without its sign and its line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// Whether it is kept, removed or added.
    pub sign: Sign,
    /// Its text.
    pub text: &'a str,
}

/// The role of a line in a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It is kept.
    Keep,
    /// It is removed.
    Remove,
    /// It is added.
    Add,
}

/// A parsed hunk header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) text: &'a str,
    /// Starts and counts of both sides.
    pub(super) ranges: Option<Ranges>,
    /// A line of the file that precedes the hunk.
    pub(super) anchor: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ranges {
    old_start: u64,
    old_count: u64,
    new_start: u64,
    new_count: u64,
}

/// Allowed excess of a count over the actual lines. Wrong counts are common, but with a larger excess the
/// rest of the hunk is missing.
const MAX_MISCOUNT: u64 = 8;

impl<'a> Hunk<'a> {
    /// The lines that must be in the file.
    pub fn old_lines(&self) -> impl DoubleEndedIterator<Item = &'a str> + Clone {
        self.lines.iter().filter(|line| line.sign != Sign::Add).map(|line| line.text)
    }

    /// The lines that will be in the file.
    pub fn new_lines(&self) -> impl DoubleEndedIterator<Item = &'a str> + Clone {
        self.lines.iter().filter(|line| line.sign != Sign::Remove).map(|line| line.text)
    }

    /// A hunk of these lines with this header.
    fn of(line: usize, header: Header<'a>, body: Body<'a>) -> Result<Hunk<'a>, PatchError> {
        if body.lines.iter().all(|line| line.sign == Sign::Keep) {
            let what = "begins a hunk without a line that begins with + or -";
            return Err(PatchError::invalid(line, what)
                .hint("Put + before lines to add and - before lines to remove."));
        }
        if let Some(ranges) = &header.ranges {
            ranges.require_not_cut_off(&body.lines, line)?;
        }
        Ok(Hunk {
            line,
            header: header.text,
            before: header.ranges.map(|ranges| lines_before(ranges.old_start, ranges.old_count)),
            before_new: header
                .ranges
                .map(|ranges| lines_before(ranges.new_start, ranges.new_count)),
            anchors: header.anchor.into_iter().collect(),
            lines: body.lines,
            at_end: false,
            appends: false,
            old_unended: body.old_unended,
            new_unended: body.new_unended,
        })
    }
}

impl<'a> Header<'a> {
    /// Parses a line that begins with `@@`.
    pub(super) fn parse(line: PatchLine<'a>) -> Result<Header<'a>, PatchError> {
        let text = line.text.trim_end();
        let inside = text.trim_start_matches('@').trim_start();
        if text.starts_with("@@@") {
            let what = "begins a hunk of a merge (@@@), which is not supported";
            return Err(PatchError::unsupported(line.number, what)
                .hint("Give a diff between two versions, as printed by git diff A B."));
        }
        let numbered = inside.strip_prefix('-').is_some_and(|rest| {
            rest.trim_start_matches(['-', ' ']).starts_with(|c: char| c.is_ascii_digit())
        });
        if numbered {
            let ranges = Ranges::parse(inside).ok_or_else(|| {
                PatchError::invalid(line.number, "has a hunk header with invalid numbers")
                    .hint("Use @@ -OLD,COUNT +NEW,COUNT @@, or just @@.")
            })?;
            return Ok(Header { text, ranges: Some(ranges), anchor: None });
        }
        let anchor = inside.trim_end_matches('@').trim_end();
        // Models write `@@ ... @@` if they do not know the numbers.
        let says_something = anchor.chars().any(|c| c.is_alphanumeric() || "{}()[]<>_".contains(c));
        Ok(Header { text, ranges: None, anchor: Some(anchor).filter(|_| says_something) })
    }
}

impl Ranges {
    /// Parses `-1,3 +1,4 @@ …`. `None` if the numbers are invalid.
    fn parse(text: &str) -> Option<Ranges> {
        let mut words = text.split_ascii_whitespace();
        let (old_start, old_count) = range(words.next()?.strip_prefix('-')?)?;
        let (new_start, new_count) = range(words.next()?.strip_prefix('+')?.trim_end_matches('@'))?;
        Some(Ranges { old_start, old_count, new_start, new_count })
    }

    fn require_not_cut_off(&self, lines: &[HunkLine<'_>], line: usize) -> Result<(), PatchError> {
        let count = |but: Sign| lines.iter().filter(|line| line.sign != but).count() as u64;
        let sides = [(self.old_count, count(Sign::Add)), (self.new_count, count(Sign::Remove))];
        for (said, there) in sides {
            if said > there.saturating_mul(2).saturating_add(MAX_MISCOUNT) {
                let what = format!(
                    "begins a hunk that should have {said} lines but has {there}: it seems truncated"
                );
                return Err(PatchError::invalid(line, what)
                    .hint("Send the whole hunk, or correct the counts in its header."));
            }
        }
        Ok(())
    }
}

/// The number of lines before a range. An empty range is after the named line.
fn lines_before(start: u64, count: u64) -> usize {
    let before = if count == 0 { start } else { start.saturating_sub(1) };
    usize::try_from(before).unwrap_or(usize::MAX)
}

fn range(text: &str) -> Option<(u64, u64)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// The lines of a hunk.
#[derive(Default)]
struct Body<'a> {
    lines: Vec<HunkLine<'a>>,
    old_unended: bool,
    new_unended: bool,
}

impl<'a> Body<'a> {
    /// Adds a line. Returns false if it cannot belong to a hunk.
    fn take(&mut self, text: &'a str) -> bool {
        let (sign, rest) = match text.as_bytes().first() {
            Some(b' ') => (Sign::Keep, &text[1..]),
            Some(b'-') => (Sign::Remove, &text[1..]),
            Some(b'+') => (Sign::Add, &text[1..]),
            // The space of an empty context line was stripped as trailing whitespace.
            None => (Sign::Keep, text),
            Some(b'\r') if text.len() == 1 => (Sign::Keep, text),
            Some(b'\\') => {
                self.mark_unended();
                return true;
            }
            _ => return false,
        };
        self.lines.push(HunkLine { sign, text: rest });
        true
    }

    /// Handles `\ No newline at end of file`, in any language.
    fn mark_unended(&mut self) {
        let Some(last) = self.lines.last() else { return };
        self.old_unended |= last.sign != Sign::Add;
        self.new_unended |= last.sign != Sign::Remove;
    }

    /// Drops empty lines at the end. They are more likely separators than context, and would add nothing.
    fn drop_empty_end(&mut self) {
        while self.lines.last().is_some_and(|line| line.sign == Sign::Keep && line.text.is_empty())
        {
            self.lines.pop();
        }
    }
}

/// Parses the hunk of a unified diff after its header `line`.
pub(super) fn parse_unified<'a>(
    source: &mut UnfencedLines<'a>,
    line: PatchLine<'a>,
    is_header: fn(UnfencedLines<'a>) -> bool,
) -> Result<Hunk<'a>, PatchError> {
    let header = Header::parse(line)?;
    let counted = header.ranges.and_then(|ranges| parse_counted(*source, ranges, is_header));
    let body = match counted {
        Some((body, rest)) => {
            *source = rest;
            body
        }
        None => parse_uncounted(source, is_header)?,
    };
    Hunk::of(line.number, header, body)
}

/// Reads the lines by the counts, if these are right. A line that looks like a header is then an ordinary
/// line.
fn parse_counted<'a>(
    mut source: UnfencedLines<'a>,
    ranges: Ranges,
    is_header: fn(UnfencedLines<'a>) -> bool,
) -> Option<(Body<'a>, UnfencedLines<'a>)> {
    let mut body = Body::default();
    let (mut old, mut new) = (ranges.old_count, ranges.new_count);
    while old > 0 || new > 0 {
        let taken = body.lines.len();
        if !body.take(source.next_line()?.text) {
            return None;
        }
        let Some(line) = body.lines.get(taken) else { continue };
        old = old.checked_sub(u64::from(line.sign != Sign::Add))?;
        new = new.checked_sub(u64::from(line.sign != Sign::Remove))?;
    }
    while let Some(line) = source.peek().filter(|line| line.text.starts_with('\\')) {
        body.take(line.text);
        source.next_line();
    }
    let more = source.peek().is_some_and(|next| {
        next.text.starts_with([' ', '+', '-']) && !is_signature(source) && !is_header(source)
    });
    (!more).then_some((body, source))
}

/// Reads all lines up to the next header, since the counts are wrong or missing.
fn parse_uncounted<'a>(
    source: &mut UnfencedLines<'a>,
    is_header: fn(UnfencedLines<'a>) -> bool,
) -> Result<Body<'a>, PatchError> {
    let mut body = Body::default();
    while let Some(line) = source.peek() {
        if is_header(*source) || is_signature(*source) || line.text.starts_with("```") {
            break;
        }
        if !body.take(line.text) {
            return Err(missing_sign(line));
        }
        source.next_line();
    }
    body.drop_empty_end();
    Ok(body)
}

/// Parses a hunk of a `*** Begin Patch`. It ends at the next `@@` or `***`.
pub(super) fn parse_envelope<'a>(
    source: &mut UnfencedLines<'a>,
    line: usize,
    header: Header<'a>,
) -> Result<Hunk<'a>, PatchError> {
    let mut body = Body::default();
    while let Some(line) = source.peek() {
        if line.text.starts_with("@@") || line.text.starts_with("***") || envelope::is_end(*source)
        {
            break;
        }
        if !body.take(line.text) {
            return Err(missing_sign(line));
        }
        source.next_line();
    }
    body.drop_empty_end();
    Hunk::of(line, header, body)
}

/// The error for a line without a sign. Skipping it would silently drop the lines after it.
fn missing_sign(line: PatchLine<'_>) -> PatchError {
    let what = "is in a hunk but does not begin with a space, + or -";
    PatchError::invalid(line.number, what)
        .hint("Begin each line of a hunk with a space (context), - (removed) or + (added).")
}

/// `-- ` and a version, which mail programs and git append to a patch.
fn is_signature(mut source: UnfencedLines<'_>) -> bool {
    let dashes = source.next_line().is_some_and(|line| matches!(line.text, "-- " | "--"));
    let digit = |line: PatchLine<'_>| line.text.starts_with(|c: char| c.is_ascii_digit());
    dashes && source.next_line().is_none_or(digit)
}
