//! What a pattern finds in one text: how often, and the lines to show.

use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};

use crate::pattern::{Engine, Pattern};
use crate::rank::is_definition;
use crate::stop::Stop;

/// What is wanted of the hits in one text.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// So many hits from the beginning are not shown.
    pub skip: u64,
    /// So many are shown.
    pub most: u64,
    /// Counting ends here.
    pub count_to: u64,
    /// Lines shown before a hit.
    pub before: u64,
    /// Lines shown after a hit.
    pub after: u64,
}

impl Keep {
    /// No line is shown, hits are counted up to a number.
    pub fn count(count_to: u64) -> Keep {
        Keep { skip: 0, most: 0, count_to, before: 0, after: 0 }
    }
}

/// What was found in one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// How many lines matched, or how often it did, if matches go over lines.
    pub count: u64,
    /// Whether one of the first hits looks like the definition of what was looked for.
    pub definition: bool,
    /// Lines where the trying engine took too many steps, and nothing is known.
    pub gave_up: u64,
    /// The lines to show, in order.
    pub lines: Vec<ShownLine>,
    /// The encoding of the text, if it is not UTF-8.
    pub encoding: Option<&'static str>,
}

/// A line to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLine {
    /// Its number, from 1.
    pub number: u64,
    /// Which hit of the text it belongs to, from 0; nothing, if it only stands beside one.
    pub hit: Option<u64>,
    /// What it says, or the part around the match.
    pub text: Vec<u8>,
    /// Where the match begins in the line, in characters from 1.
    pub column: u64,
    /// Characters before the part that is shown.
    pub before: u64,
    /// Characters after it.
    pub after: u64,
}

/// A line of so many bytes is shown whole.
const WHOLE_BYTES: usize = 500;

/// Of a longer one, so much before the match and so much from where it begins.
const BEFORE_MATCH: usize = 100;
const FROM_MATCH: usize = 200;

/// A match over so many lines is shown by its first ones.
const MAX_MATCH_LINES: u64 = 50;

/// So many hits are looked at for a definition.
const DEFINITION_HITS: u64 = 50;

/// Looks for a pattern in a text whose lines end with `\n`.
pub(crate) fn find(pattern: &Pattern, text: &[u8], keep: Keep, stop: &Stop<'_>) -> Hits {
    let mut finding =
        Finding { text, keep, hits: Hits::default(), counted: 0, number: 1, shown_to: 0, owed: 0 };
    match &pattern.engine {
        Engine::Linear(matcher) if pattern.multiline => over_lines(
            text,
            |at| matcher.find_at(text, at).ok().flatten().map(|found| found.start()..found.end()),
            &mut finding,
        ),
        Engine::Linear(matcher) => line_by_line(text, matcher, &mut finding),
        Engine::Bounded(regex) => bounded(text, regex, pattern.multiline, &mut finding, stop),
    }
    finding.end();
    finding.hits
}

/// Finds one line after the other; the engine may tell only where one might be.
fn line_by_line(text: &[u8], matcher: &impl Matcher, finding: &mut Finding<'_>) {
    let mut at = 0;
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
        let needs_place = finding.needs_place();
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

/// Finds matches that may go over several lines.
fn over_lines(
    text: &[u8],
    mut find_at: impl FnMut(usize) -> Option<Range<usize>>,
    finding: &mut Finding<'_>,
) {
    let mut at = 0;
    while at <= text.len() {
        let Some(found) = find_at(at) else { return };
        at = if found.is_empty() { found.end + 1 } else { found.end };
        let first = line_around(text, found.start);
        if first.start >= text.len() {
            return;
        }
        // The end of the last line is not the beginning of another.
        let last = line_around(text, found.end.max(found.start + 1) - 1);
        if !finding.hit(first.start..last.end, found) {
            return;
        }
    }
}

/// The same with the engine that works on letters and may give up.
fn bounded(
    text: &[u8],
    regex: &fancy_regex::Regex,
    multiline: bool,
    finding: &mut Finding<'_>,
    stop: &Stop<'_>,
) {
    if multiline {
        let Ok(letters) = std::str::from_utf8(text) else { return };
        let mut gave_up = 0;
        let find_at = |at: usize| {
            let at = (at..=letters.len()).find(|&at| letters.is_char_boundary(at))?;
            match regex.find_from_pos(letters, at) {
                Ok(found) => found.map(|found| found.range()),
                Err(_) => {
                    gave_up += 1;
                    None
                }
            }
        };
        over_lines(text, find_at, finding);
        finding.hits.gave_up = gave_up;
        return;
    }
    let mut at = 0;
    while at < text.len() && !stop.now() {
        let line = line_around(text, at);
        at = line.end + 1;
        let inner = String::from_utf8_lossy(&text[line.clone()]);
        let inner = inner.strip_suffix('\r').unwrap_or(&inner);
        match regex.find(inner) {
            Ok(None) => {}
            Err(_) => finding.hits.gave_up += 1,
            Ok(Some(found)) => {
                let place = line.start + found.start()..line.start + found.end();
                if !finding.hit(line, place) {
                    return;
                }
            }
        }
    }
}

/// The line that a place is in, without its `\n`.
fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |after| at + after);
    start..end
}

struct Finding<'a> {
    text: &'a [u8],
    keep: Keep,
    hits: Hits,
    /// Where line numbers are counted up to, and the number there.
    counted: usize,
    number: u64,
    /// Lines up to here are shown already.
    shown_to: usize,
    /// Lines still to be shown after the last hit.
    owed: u64,
}

impl Finding<'_> {
    /// Whether it matters where in its line the next hit is.
    fn needs_place(&self) -> bool {
        let shown = self.hits.count >= self.keep.skip
            && self.hits.count < self.keep.skip.saturating_add(self.keep.most);
        shown || (!self.hits.definition && self.hits.count < DEFINITION_HITS)
    }

    /// Takes a hit; answers whether another is of use.
    fn hit(&mut self, lines: Range<usize>, place: Range<usize>) -> bool {
        let at = self.hits.count;
        self.hits.count += 1;
        if !self.hits.definition && at < DEFINITION_HITS {
            self.hits.definition = is_definition(self.text, &lines, &place);
        }
        let wanted = at >= self.keep.skip && at - self.keep.skip < self.keep.most;
        if wanted {
            self.pay(lines.start);
            self.show_before(lines.start);
            self.show_match(&lines, place.start);
            self.owed = self.keep.after;
        } else {
            self.pay(lines.start);
            self.owed = 0;
        }
        self.hits.count < self.keep.count_to
    }

    /// Shows what is owed after the last hit, up to the next one.
    fn pay(&mut self, until: usize) {
        while self.owed > 0 && self.shown_to < until.min(self.text.len()) {
            let line = line_around(self.text, self.shown_to);
            self.push(line, None);
            self.owed -= 1;
        }
    }

    fn end(&mut self) {
        self.pay(self.text.len());
    }

    fn show_before(&mut self, until: usize) {
        let mut start = until;
        for _ in 0..self.keep.before {
            if start <= self.shown_to {
                break;
            }
            start = line_around(self.text, start - 1).start;
        }
        let mut start = start.max(self.shown_to);
        while start < until {
            let line = line_around(self.text, start);
            start = line.end + 1;
            self.push(line, None);
        }
    }

    fn show_match(&mut self, lines: &Range<usize>, place: usize) {
        let mut start = lines.start.max(self.shown_to);
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
        let passed = &self.text[self.counted..line.start];
        self.number += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.counted = line.start;
        self.shown_to = (line.end + 1).min(self.text.len());
        let bytes = &self.text[line];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let hit = place.map(|_| self.hits.count - 1);
        self.hits.lines.push(shown(self.number, bytes, place, hit));
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

/// The place itself, or the beginning of the character that it is in.
fn boundary(line: &[u8], at: usize) -> usize {
    let back = (0..4).find(|back| {
        at.checked_sub(*back).is_none_or(|at| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80))
    });
    at.saturating_sub(back.unwrap_or(0))
}

fn chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}
