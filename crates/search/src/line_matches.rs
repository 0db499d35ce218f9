//! The matches of a pattern in one text: their number, and the lines to show.

use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};

use crate::backtrack::{Backtracker, Found};
use crate::deadline::Deadline;
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
    pub(crate) fn is_nothing(&self) -> bool {
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
const NAMED_LINES: usize = 3;

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
}

/// A line of at most this length is shown whole.
const WHOLE_BYTES: usize = 500;

/// The part of a longer line that is shown, before and from the start of the match.
const BEFORE_MATCH: usize = 100;
const FROM_MATCH: usize = 200;

/// A longer match is shown by its first lines.
const MAX_MATCH_LINES: u64 = 50;

/// Number of matches that are examined for a definition.
const DEFINITION_HITS: u64 = 50;

/// Searches a text whose lines end in `\n`.
pub(crate) fn find(
    pattern: &Pattern,
    text: &[u8],
    keep: MatchOptions,
    stop: &Deadline<'_>,
) -> LineMatches {
    let mut finding = Finding::new(keep);
    finding.find(pattern, text, 0, stop);
    finding.finish()
}

/// Searches line by line. The engine may return a candidate line only.
fn line_by_line(text: &[u8], from: usize, matcher: &impl Matcher, finding: &mut In<'_>) {
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
        let needs_place = finding.state.needs_place();
        let place = || match matcher.find(inner) {
            Ok(Some(found)) => found.start()..found.end(),
            _ => 0..0,
        };
        let matched = if needs_place { place() } else { 0..0 };
        if !finding.hit(line.clone(), line.start + matched.start..line.start + matched.end) {
            return;
        }
    }
}

/// Searches for matches that may span lines.
fn over_lines(text: &[u8], from: usize, matcher: &impl Matcher, finding: &mut In<'_>) {
    let mut at = from;
    while at <= text.len() {
        let Ok(Some(found)) = matcher.find_at(text, at) else { return };
        at = if found.is_empty() { found.end() + 1 } else { found.end() };
        if !finding.matched(found.start()..found.end()) {
            return;
        }
    }
}

/// The line that contains an offset, without its `\n`.
pub(crate) fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |after| at + after);
    start..end
}

/// Collects matches from one text, or from the windows of a larger one.
#[derive(Debug)]
pub(crate) struct Finding {
    keep: MatchOptions,
    hits: LineMatches,
    /// The offset up to which lines are counted, and the line number there.
    counted: usize,
    number: u64,
    /// Offset and line number as above, but counted only for undecided lines.
    named: (usize, u64),
    /// Lines before this offset are already shown.
    shown_to: usize,
    /// Number of context lines still to be shown after the last match.
    owed: u64,
}

impl Finding {
    pub(crate) fn new(keep: MatchOptions) -> Finding {
        let (hits, named) = (LineMatches::default(), (0, 1));
        Finding { keep, hits, counted: 0, number: 1, named, shown_to: 0, owed: 0 }
    }

    /// Searches a text from the offset of a line.
    pub(crate) fn find(
        &mut self,
        pattern: &Pattern,
        text: &[u8],
        from: usize,
        stop: &Deadline<'_>,
    ) {
        let mut finding = In { state: self, text };
        if finding.state.wants_hits() {
            match &pattern.engine {
                Engine::Linear(matcher) if pattern.multiline => {
                    over_lines(text, from, matcher, &mut finding);
                }
                Engine::Linear(matcher) => line_by_line(text, from, matcher, &mut finding),
                Engine::Backtracking(backtracker) => {
                    finding.backtrack(backtracker, from, pattern.multiline, stop);
                }
            }
        }
        finding.pay(text.len());
    }

    pub(crate) fn finish(self) -> LineMatches {
        self.hits
    }

    /// Whether no further line is needed.
    pub(crate) fn is_enough(&self) -> bool {
        !self.wants_hits() && self.owed == 0
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
        for _ in 0..self.keep.before {
            if start == 0 {
                break;
            }
            start = line_around(text, start - 1).start;
        }
        start
    }

    /// Discards the first bytes of a text. Offsets then refer to the rest.
    pub(crate) fn forget(&mut self, text: &[u8], bytes: usize) {
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
    pub(crate) fn pass_over(&mut self, text: &[u8], at: usize) {
        In { state: self, text }.undecided(at..text.len());
    }

    fn wants_hits(&self) -> bool {
        self.hits.count < self.keep.count_to
    }

    /// Whether the position of the next match in its line is needed.
    fn needs_place(&self) -> bool {
        let shown = self.hits.count >= self.keep.skip
            && self.hits.count < self.keep.skip.saturating_add(self.keep.most);
        shown || (!self.hits.definition && self.hits.count < DEFINITION_HITS)
    }
}

/// The matches in one text or window.
struct In<'a> {
    state: &'a mut Finding,
    text: &'a [u8],
}

impl In<'_> {
    fn backtrack(
        &mut self,
        backtracker: &Backtracker,
        from: usize,
        multiline: bool,
        stop: &Deadline<'_>,
    ) {
        let text = &self.text[from..];
        let most = self.state.keep.count_to - self.state.hits.count;
        let looked_to = backtracker.look(text, multiline, most, stop, &mut |found| match found {
            Found::Match(place) => self.matched(place.start + from..place.end + from),
            Found::Undecided(line) => self.undecided(line.start + from..line.end + from),
        });
        self.state.hits.stopped = looked_to < text.len();
    }

    /// Adds a match, which may span lines. Returns whether another is wanted.
    fn matched(&mut self, place: Range<usize>) -> bool {
        let first = line_around(self.text, place.start);
        if first.start >= self.text.len() {
            return false;
        }
        // A match that ends with a line end does not include the next line.
        let last = line_around(self.text, place.end.max(place.start + 1) - 1);
        self.hit(first.start..last.end, place)
    }

    /// Adds an undecided line. Returns whether more results are wanted.
    fn undecided(&mut self, line: Range<usize>) -> bool {
        let undecided = &mut self.state.hits.undecided;
        undecided.count += 1;
        if undecided.first.len() < NAMED_LINES {
            let (counted, number) = &mut self.state.named;
            let passed = self.text.get(*counted..line.start).unwrap_or_default();
            *number += memchr::memchr_iter(b'\n', passed).count() as u64;
            *counted = line.start;
            undecided.first.push(*number);
        }
        true
    }

    /// Adds a match with its lines. Returns whether another is wanted.
    fn hit(&mut self, lines: Range<usize>, place: Range<usize>) -> bool {
        let at = self.state.hits.count;
        self.state.hits.count += 1;
        if !self.state.hits.definition && at < DEFINITION_HITS {
            self.state.hits.definition = is_definition(self.text, &lines, &place);
        }
        let wanted = at >= self.state.keep.skip && at - self.state.keep.skip < self.state.keep.most;
        if wanted {
            self.pay(lines.start);
            self.show_before(lines.start);
            self.show_match(&lines, place.start);
            self.state.owed = self.state.keep.after;
        } else {
            self.pay(lines.start);
            self.state.owed = 0;
        }
        self.state.hits.count < self.state.keep.count_to
    }

    /// Shows the context lines that are due after the last match, up to `until`.
    fn pay(&mut self, until: usize) {
        while self.state.owed > 0 && self.state.shown_to < until.min(self.text.len()) {
            let line = line_around(self.text, self.state.shown_to);
            self.push(line, None);
            self.state.owed -= 1;
        }
    }

    fn show_before(&mut self, until: usize) {
        let mut start = until;
        for _ in 0..self.state.keep.before {
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

    fn show_match(&mut self, lines: &Range<usize>, place: usize) {
        let mut start = lines.start.max(self.state.shown_to);
        let mut shown = 0;
        while start < self.text.len() && start <= lines.end && shown < MAX_MATCH_LINES {
            let line = line_around(self.text, start);
            start = line.end + 1;
            shown += 1;
            let place = place.clamp(line.start, line.end) - line.start;
            self.push(line, Some(place));
        }
    }

    fn push(&mut self, line: Range<usize>, place: Option<usize>) {
        let passed = &self.text[self.state.counted..line.start];
        self.state.number += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.state.counted = line.start;
        self.state.shown_to = (line.end + 1).min(self.text.len());
        let bytes = &self.text[line];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let hit = place.map(|_| self.state.hits.count - 1);
        self.state.hits.lines.push(shown(self.state.number, bytes, place, hit));
    }
}

fn shown(number: u64, line: &[u8], place: Option<usize>, hit: Option<u64>) -> ShownLine {
    let at = place.unwrap_or(0).min(line.len());
    let part = match line.len() <= WHOLE_BYTES {
        true => 0..line.len(),
        false => {
            let start = boundary(line, at.saturating_sub(BEFORE_MATCH));
            start..boundary(line, (at + FROM_MATCH).min(line.len()))
        }
    };
    ShownLine {
        number,
        hit,
        text: line[part.clone()].to_vec(),
        column: chars(&line[..at]) + 1,
        before: chars(&line[..part.start]),
        after: chars(&line[part.end..]),
    }
}

/// The offset, moved back to the start of a character.
fn boundary(line: &[u8], at: usize) -> usize {
    let back = (0..4).find(|back| {
        at.checked_sub(*back).is_none_or(|at| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80))
    });
    at.saturating_sub(back.unwrap_or(0))
}

fn chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}
