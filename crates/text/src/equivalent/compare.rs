//! Compares a sought text with a file line by line.

use std::ops::Range;

use memchr::memmem;

use super::indent::{Reindent, indent_of, leading_whitespace};
use super::required_literal::{Anchor, WHITESPACE};
use super::typography::{prefix_len, suffix_len};
use super::{Difference, Equivalent, MAX_EQUIVALENTS, MatchLevel, SoughtText};

/// The work allowed for one level. If a hostile text exceeds it, the search stops without a match.
struct SearchBudget {
    lines: usize,
    /// Occurrences of the anchor.
    hits: usize,
    /// Bytes of lines that are scanned for their ends.
    bytes: usize,
}

impl Default for SearchBudget {
    /// About a second.
    fn default() -> Self {
        SearchBudget { lines: 1_000_000, hits: 20_000_000, bytes: 4 << 30 }
    }
}

impl SearchBudget {
    /// Counts a line of `bytes` bytes. `None` if the budget is exhausted.
    fn spend_line(&mut self, bytes: usize) -> Option<()> {
        self.lines = self.lines.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        (!self.is_exhausted()).then_some(())
    }

    fn spend_hit(&mut self) {
        self.hits = self.hits.saturating_sub(1);
    }

    fn is_exhausted(&self) -> bool {
        self.lines == 0 || self.hits == 0 || self.bytes == 0
    }
}

/// A search at one level.
#[derive(Clone, Copy)]
pub(super) struct LevelSearch<'a> {
    pub(super) text: &'a [u8],
    pub(super) terminator: u8,
    pub(super) wanted: &'a SoughtText,
    pub(super) level: MatchLevel,
}

impl LevelSearch<'_> {
    /// The matches, from left to right.
    pub(super) fn find(&self, anchor: &Anchor<'_>) -> Vec<Equivalent> {
        let mut found: Vec<Equivalent> = Vec::new();
        let mut budget = SearchBudget::default();
        // Many hits may be in one long line. Its ends are found once.
        let (mut line, mut next_line) = (0..0, 0);
        for hit in memmem::find_iter(self.text, anchor.piece.as_bytes()) {
            budget.spend_hit();
            if budget.is_exhausted() {
                return Vec::new();
            }
            if hit >= next_line {
                let found = self.line_at(self.line_start(hit));
                (line, next_line) = (found.content, found.next.unwrap_or(usize::MAX));
            }
            let Some(place) = self.match_at(line.clone(), hit, anchor, &mut budget) else {
                continue;
            };
            if found.last() != Some(&place) {
                found.push(place);
            }
            if found.len() == MAX_EQUIVALENTS {
                break;
            }
        }
        found
    }

    /// The match that the anchor at `hit`, in this line, is part of.
    fn match_at(
        &self,
        line: Range<usize>,
        hit: usize,
        anchor: &Anchor<'_>,
        budget: &mut SearchBudget,
    ) -> Option<Equivalent> {
        let mut difference = Difference { level: self.level, missing_newline: false };
        if self.wanted.lines.len() == 1 && !self.level.ignores_indentation() {
            let line = self.match_within_line(line, hit, anchor)?;
            return Some(Equivalent { difference, lines: vec![line] });
        }
        let mut start = line.start;
        for _ in 0..anchor.line {
            let before = self.line_start(start.checked_sub(1)?);
            budget.spend_line(start - before)?;
            start = before;
        }
        let mut lines = Vec::new();
        let mut next = Some(start);
        for (at, wanted) in self.wanted.lines.iter().enumerate() {
            let Some(start) = next else {
                // The sought text ends with a newline and the file does not: nothing else is missing.
                let nothing_left = wanted.is_empty() && at + 1 == self.wanted.lines.len();
                lines.push(nothing_left.then_some(self.text.len()..self.text.len())?);
                difference.missing_newline = true;
                break;
            };
            let line = self.line_at(start);
            budget.spend_line(line.content.len())?;
            lines.push(self.match_line(at, wanted, line.content)?);
            next = line.next;
        }
        if self.level.ignores_indentation() {
            lines = self.with_uniform_indent(lines)?;
        }
        Some(Equivalent { difference, lines })
    }

    /// Returns the lines if one rule maps each sought indentation to that of the file. A first line without
    /// indentation may begin after the file's indentation.
    fn with_uniform_indent(&self, mut lines: Vec<Range<usize>>) -> Option<Vec<Range<usize>>> {
        let wanted = &self.wanted.lines;
        let is_uniform = |lines: &[_]| Reindent::between(self.text, wanted, lines).is_some();
        if is_uniform(&lines) {
            return Some(lines);
        }
        let first = lines.first_mut().filter(|_| indent_of(&wanted[0]).is_empty())?;
        first.start += leading_whitespace(&self.text[first.clone()]);
        is_uniform(&lines).then_some(lines)
    }

    /// Matches a text of one line, which may begin and end anywhere in a line of the file.
    fn match_within_line(
        &self,
        line: Range<usize>,
        hit: usize,
        anchor: &Anchor<'_>,
    ) -> Option<Range<usize>> {
        let wanted = &self.wanted.lines[0];
        let folds = self.level.folds_typography();
        let before = suffix_len(self.text.get(line.start..hit)?, &wanted[..anchor.at], folds)?;
        let rest = &wanted[anchor.at..];
        let file = self.text.get(hit..line.end)?;
        let after = match self.trimmed(rest) {
            // Trailing whitespace of the sought text matches all trailing whitespace of the file's line.
            trimmed if trimmed.len() < rest.len() => {
                let after = prefix_len(file, trimmed, folds)?;
                (leading_whitespace(&file[after..]) == file.len() - after).then_some(file.len())?
            }
            _ => prefix_len(file, rest, folds)?,
        };
        Some(hit - before..hit + after)
    }

    /// The part of the file's line that matches one line of a longer text: the end of the first line, the
    /// beginning of the last one, otherwise all of it without trailing whitespace.
    fn match_line(&self, at: usize, wanted: &str, file: Range<usize>) -> Option<Range<usize>> {
        let folds = self.level.folds_typography();
        let (first, last) = (at == 0, at + 1 == self.wanted.lines.len());
        if last && wanted.is_empty() {
            return Some(file.start..file.start);
        }
        let content = &self.text[file.clone()];
        let trimmed = self.trimmed(wanted);
        let kept = if self.level.compares_trailing_whitespace() {
            content.len()
        } else {
            content.len() - trailing_whitespace(content)
        };
        if self.level.ignores_indentation() {
            let have = content[..kept].get(leading_whitespace(content)..).unwrap_or_default();
            let want = trimmed.trim_start_matches(WHITESPACE);
            return (prefix_len(have, want, folds)? == have.len())
                .then(|| file.start..file.start + kept);
        }
        if first {
            let len = suffix_len(&content[..kept], trimmed, folds)?;
            return Some(file.start + kept - len..file.start + kept);
        }
        let len = prefix_len(content, trimmed, folds)?;
        let whole = !last || trimmed.len() < wanted.len();
        match (whole, last) {
            (true, _) if len != kept => None,
            (true, true) => Some(file),
            _ => Some(file.start..file.start + len),
        }
    }

    fn trimmed<'b>(&self, wanted: &'b str) -> &'b str {
        if self.level.compares_trailing_whitespace() {
            wanted
        } else {
            wanted.trim_end_matches(WHITESPACE)
        }
    }

    fn line_start(&self, at: usize) -> usize {
        memchr::memrchr(self.terminator, &self.text[..at]).map_or(0, |end| end + 1)
    }

    fn line_at(&self, start: usize) -> FileLine {
        let rest = &self.text[start..];
        let end = memchr::memchr(self.terminator, rest);
        let content = &rest[..end.unwrap_or(rest.len())];
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        FileLine { content: start..start + content.len(), next: end.map(|end| start + end + 1) }
    }
}

fn trailing_whitespace(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| b" \t".contains(byte)).count()
}

/// A line of the file, without its line ending.
struct FileLine {
    content: Range<usize>,
    /// The start of the next line, if this one is terminated.
    next: Option<usize>,
}
