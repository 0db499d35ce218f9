//! The matches of a pattern in one text: their number, and the lines to show.

use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};

use crate::backtrack::{Backtracker, Found};
use crate::deadline::Deadline;
use crate::line_around::line_around;
use crate::pattern::{Engine, Pattern};
use crate::rank::is_definition;

/// Limits and context lines of a search in one text.
#[derive(Debug, Clone, Copy)]
pub struct MatchOptions {
    /// Number of matches at the beginning that are not shown.
    pub skip: u64,
    /// Maximum number of matches that are shown.
    pub most: u64,
    /// Counting stops at this number.
    pub count_to: u64,
    /// Lines shown before a match.
    pub before: u64,
    /// Lines shown after a match.
    pub after: u64,
}

impl MatchOptions {
    /// Shows no line and counts matches up to `count_to`.
    pub fn count(count_to: u64) -> MatchOptions {
        MatchOptions { skip: 0, most: 0, count_to, before: 0, after: 0 }
    }
}

/// The matches in one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineMatches {
    /// Number of matching lines, or of matches if matches may span lines.
    pub count: u64,
    /// Whether one of the first matches looks like a definition.
    pub definition: bool,
    /// Lines on which the pattern backtracks too much. If matches may span lines, one line stands for the
    /// rest of the text.
    pub undecided: Undecided,
    /// The deadline passed before the end of the text.
    pub stopped: bool,
    /// The lines to show, in order.
    pub lines: Vec<ShownLine>,
    /// The encoding of the text, if it is not UTF-8.
    pub encoding: Option<&'static str>,
}

impl LineMatches {
    /// Whether the whole text certainly has no match.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.undecided.count == 0 && !self.stopped
    }
}

/// Undecided lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undecided {
    /// Their number.
    pub count: u64,
    /// The first line numbers, from 1.
    pub first: Vec<u64>,
}

/// Number of undecided lines that are named.
const MAX_NAMED_LINES: usize = 3;

/// A line to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLine {
    /// Its number, from 1.
    pub number: u64,
    /// The number of its match in the text, from 0. `None` for a context line.
    pub hit: Option<u64>,
    /// The line, or the part around the match.
    pub text: Vec<u8>,
    /// The column of the match, in characters from 1.
    pub column: u64,
    /// Number of characters before the shown part.
    pub before: u64,
    /// Number of characters after the shown part.
    pub after: u64,
    /// Number of further lines of its match, which are not shown.
    pub lines_left_out: u64,
}

/// A line of at most this length is shown whole.
const MAX_WHOLE_LINE_BYTES: usize = 500;

/// The part of a longer line that is shown, before and from the start of the match.
const BYTES_BEFORE_MATCH: usize = 100;
const BYTES_FROM_MATCH: usize = 200;

/// A longer match is shown by its first lines.
const MAX_MATCH_LINES: u64 = 50;

/// Number of matches that are examined for a definition.
const DEFINITION_HITS: u64 = 50;

/// Searches a text whose lines end in `\n`.
pub(crate) fn find(
    pattern: &Pattern,
    text: &[u8],
    options: MatchOptions,
    stop: &Deadline<'_>,
) -> LineMatches {
    let mut collector = MatchCollector::new(options);
    collector.find(pattern, text, 0, stop);
    collector.finish()
}

/// Searches line by line. The engine may return a candidate line only.
fn line_by_line(
    text: &[u8],
    from: usize,
    matcher: &impl Matcher,
    collector: &mut WindowCollector<'_>,
) {
    let mut at = from;
    while at < text.len() {
        let Ok(Some(kind)) = matcher.find_candidate_line(&text[at..]) else { return };
        let (offset, is_certain) = match kind {
            LineMatchKind::Confirmed(offset) => (at + offset, true),
            LineMatchKind::Candidate(offset) => (at + offset, false),
        };
        let line = line_around(text, offset);
        if line.start >= text.len() {
            return;
        }
        at = line.end + 1;
        let inner = &text[line.clone()];
        if !is_certain && !matcher.is_match(inner).unwrap_or(false) {
            continue;
        }
        let needs_match_range = collector.state.needs_match_range();
        let range = || match matcher.find(inner) {
            Ok(Some(found)) => found.start()..found.end(),
            _ => 0..0,
        };
        let matched = if needs_match_range { range() } else { 0..0 };
        if !collector.add_hit(line.clone(), line.start + matched.start..line.start + matched.end) {
            return;
        }
    }
}

/// Searches for matches that may span lines.
fn over_lines(
    text: &[u8],
    from: usize,
    matcher: &impl Matcher,
    collector: &mut WindowCollector<'_>,
) {
    let mut at = from;
    while at <= text.len() {
        let Ok(Some(found)) = matcher.find_at(text, at) else { return };
        at = if found.is_empty() { found.end() + 1 } else { found.end() };
        if !collector.add_match(found.start()..found.end()) {
            return;
        }
    }
}

/// Collects matches from one text, or from the windows of a larger one.
#[derive(Debug)]
pub(crate) struct MatchCollector {
    options: MatchOptions,
    hits: LineMatches,
    /// The offset up to which lines are counted, and the line number there.
    counted: usize,
    number: u64,
    /// Offset and line number as above, but counted only for undecided lines.
    named: (usize, u64),
    /// Lines before this offset are already shown.
    shown_to: usize,
    /// Number of context lines still to be shown after the last match.
    context_due: u64,
}

impl MatchCollector {
    pub(crate) fn new(options: MatchOptions) -> MatchCollector {
        let (hits, named) = (LineMatches::default(), (0, 1));
        MatchCollector { options, hits, counted: 0, number: 1, named, shown_to: 0, context_due: 0 }
    }

    /// Searches a text from the offset of a line.
    pub(crate) fn find(
        &mut self,
        pattern: &Pattern,
        text: &[u8],
        from: usize,
        stop: &Deadline<'_>,
    ) {
        let mut collector = WindowCollector { state: self, text };
        if collector.state.wants_hits() {
            match &pattern.engine {
                Engine::Linear(matcher) if pattern.multiline => {
                    over_lines(text, from, matcher, &mut collector);
                }
                Engine::Linear(matcher) => line_by_line(text, from, matcher, &mut collector),
                Engine::Backtracking(backtracker) => {
                    collector.backtrack(backtracker, from, stop);
                }
            }
        }
        collector.show_context_after(text.len());
    }

    pub(crate) fn finish(self) -> LineMatches {
        self.hits
    }

    /// Whether no further line is needed.
    pub(crate) fn is_finished(&self) -> bool {
        !self.wants_hits() && self.context_due == 0
    }

    /// Whether the deadline passed before the end of a text.
    pub(crate) fn is_stopped(&self) -> bool {
        self.hits.stopped
    }

    /// Whether nothing was discarded or counted yet.
    pub(crate) fn is_at_beginning(&self) -> bool {
        self.number == 1 && self.counted == 0
    }

    /// The start of the lines that may be shown before a match that follows this text.
    pub(crate) fn start_of_context(&self, text: &[u8]) -> usize {
        let mut start = text.len();
        for _ in 0..self.options.before {
            if start == 0 {
                break;
            }
            start = line_around(text, start - 1).start;
        }
        start
    }

    /// Discards the first bytes of a text. Offsets then refer to the rest.
    pub(crate) fn discard(&mut self, text: &[u8], bytes: usize) {
        let lines = |from: usize| {
            memchr::memchr_iter(b'\n', text.get(from..bytes).unwrap_or_default()).count() as u64
        };
        self.number += lines(self.counted);
        self.named.1 += lines(self.named.0);
        self.counted = self.counted.saturating_sub(bytes);
        self.named.0 = self.named.0.saturating_sub(bytes);
        self.shown_to = self.shown_to.saturating_sub(bytes);
    }

    /// Reports the line at an offset as undecided.
    pub(crate) fn mark_undecided(&mut self, text: &[u8], at: usize) {
        WindowCollector { state: self, text }.add_undecided(at..text.len());
    }

    fn wants_hits(&self) -> bool {
        self.hits.count < self.options.count_to
    }

    /// Whether the position of the next match in its line is needed.
    fn needs_match_range(&self) -> bool {
        let shown = self.hits.count >= self.options.skip
            && self.hits.count < self.options.skip.saturating_add(self.options.most);
        shown || (!self.hits.definition && self.hits.count < DEFINITION_HITS)
    }
}

/// The matches in one text or window.
struct WindowCollector<'a> {
    state: &'a mut MatchCollector,
    text: &'a [u8],
}

impl WindowCollector<'_> {
    fn backtrack(&mut self, backtracker: &Backtracker, from: usize, stop: &Deadline<'_>) {
        let text = &self.text[from..];
        let most = self.state.options.count_to - self.state.hits.count;
        let searched_to = backtracker.search(text, most, stop, &mut |found| match found {
            Found::Match(range) => self.add_match(range.start + from..range.end + from),
            Found::Undecided(line) => self.add_undecided(line.start + from..line.end + from),
        });
        self.state.hits.stopped = searched_to < text.len();
    }

    /// Adds a match, which may span lines. Returns whether another is wanted.
    fn add_match(&mut self, range: Range<usize>) -> bool {
        let first = line_around(self.text, range.start);
        if first.start >= self.text.len() {
            return false;
        }
        // A match that ends with a line end does not include the next line.
        let last = line_around(self.text, range.end.max(range.start + 1) - 1);
        self.add_hit(first.start..last.end, range)
    }

    /// Adds an undecided line. Returns whether more results are wanted.
    fn add_undecided(&mut self, line: Range<usize>) -> bool {
        let undecided = &mut self.state.hits.undecided;
        undecided.count += 1;
        if undecided.first.len() < MAX_NAMED_LINES {
            let (counted, number) = &mut self.state.named;
            let passed = self.text.get(*counted..line.start).unwrap_or_default();
            *number += memchr::memchr_iter(b'\n', passed).count() as u64;
            *counted = line.start;
            undecided.first.push(*number);
        }
        true
    }

    /// Adds a match with its lines. Returns whether another is wanted.
    fn add_hit(&mut self, lines: Range<usize>, range: Range<usize>) -> bool {
        let at = self.state.hits.count;
        self.state.hits.count += 1;
        if !self.state.hits.definition && at < DEFINITION_HITS {
            self.state.hits.definition = is_definition(self.text, &lines, &range);
        }
        let wanted =
            at >= self.state.options.skip && at - self.state.options.skip < self.state.options.most;
        if wanted {
            self.show_context_after(lines.start);
            self.show_context_before(lines.start);
            self.show_match(&lines, range.start);
            self.state.context_due = self.state.options.after;
        } else {
            self.show_context_after(lines.start);
            self.state.context_due = 0;
        }
        self.state.hits.count < self.state.options.count_to
    }

    /// Shows the context lines that are due after the last match, up to `until`.
    fn show_context_after(&mut self, until: usize) {
        while self.state.context_due > 0 && self.state.shown_to < until.min(self.text.len()) {
            let line = line_around(self.text, self.state.shown_to);
            self.push(line, None);
            self.state.context_due -= 1;
        }
    }

    fn show_context_before(&mut self, until: usize) {
        let mut start = until;
        for _ in 0..self.state.options.before {
            if start <= self.state.shown_to {
                break;
            }
            start = line_around(self.text, start - 1).start;
        }
        let mut start = start.max(self.state.shown_to);
        while start < until {
            let line = line_around(self.text, start);
            start = line.end + 1;
            self.push(line, None);
        }
    }

    fn show_match(&mut self, lines: &Range<usize>, range: usize) {
        let mut start = lines.start.max(self.state.shown_to);
        let mut shown = 0;
        while start < self.text.len() && start <= lines.end && shown < MAX_MATCH_LINES {
            let line = line_around(self.text, start);
            start = line.end + 1;
            shown += 1;
            let range = range.clamp(line.start, line.end) - line.start;
            self.push(line, Some(range));
        }
        let end = lines.end.min(self.text.len());
        if shown == MAX_MATCH_LINES
            && start <= end
            && let Some(last) = self.state.hits.lines.last_mut()
        {
            let newlines = memchr::memchr_iter(b'\n', &self.text[start..end]).count();
            last.lines_left_out = newlines as u64 + u64::from(start < self.text.len());
        }
    }

    fn push(&mut self, line: Range<usize>, range: Option<usize>) {
        let passed = &self.text[self.state.counted..line.start];
        self.state.number += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.state.counted = line.start;
        self.state.shown_to = (line.end + 1).min(self.text.len());
        let bytes = &self.text[line];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let hit = range.map(|_| self.state.hits.count - 1);
        self.state.hits.lines.push(shown_line(self.state.number, bytes, range, hit));
    }
}

fn shown_line(number: u64, line: &[u8], range: Option<usize>, hit: Option<u64>) -> ShownLine {
    let at = range.unwrap_or(0).min(line.len());
    let part = if line.len() <= MAX_WHOLE_LINE_BYTES {
        0..line.len()
    } else {
        let start = char_start(line, at.saturating_sub(BYTES_BEFORE_MATCH));
        start..char_start(line, (at + BYTES_FROM_MATCH).min(line.len()))
    };
    ShownLine {
        number,
        hit,
        text: line[part.clone()].to_vec(),
        column: count_chars(&line[..at]) + 1,
        before: count_chars(&line[..part.start]),
        after: count_chars(&line[part.end..]),
        lines_left_out: 0,
    }
}

/// The offset, moved back to the start of a character.
fn char_start(line: &[u8], at: usize) -> usize {
    let back = (0..4).find(|back| {
        at.checked_sub(*back).is_none_or(|at| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80))
    });
    at.saturating_sub(back.unwrap_or(0))
}

fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}
