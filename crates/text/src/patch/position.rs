//! Finds the positions of the hunks of a file.
//!
//! If every hunk matches exactly at the line in its header, these are the positions: the patch was made from
//! this file. Otherwise the file has changed, or a model invented the numbers, and each hunk is searched for:
//! exactly, then by the levels of [`crate::find_equivalents`]. A hunk with one match is placed there. For the
//! others the context decides: the hunks before and after, their anchors, and how far the neighbours have
//! moved. If that leaves more than one position, the patch is rejected.

mod anchors;
mod line_index;
mod neighbours;
mod sides;

use std::borrow::Cow;
use std::collections::BTreeSet;

use self::line_index::{Budget, LineIndex};
use self::neighbours::{Neighbours, clearly_nearest};
use self::sides::{
    Sides, file_end_matches, is_already_added, is_already_replaced, is_partly_removed, lines_match,
};
use super::file_lines::FileLines;
use super::hunk::Hunk;
use super::mismatch::{Divergence, Misfit, Why};
use crate::equivalent::{MatchLevel, Reindent};
use crate::nearest_match::{Likeness, nearest_block};

/// How the lines of a hunk match those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Exact,
    Equivalent(MatchLevel),
}

/// The position of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkPosition {
    /// Number of lines of the file before it.
    pub(super) start: usize,
    pub(super) fit: Fit,
    /// Its new lines are there instead of its old ones.
    pub(super) already: bool,
}

/// Number of context lines that are dropped at both ends to find out where a hunk would fit.
const MAX_DROPPED_CONTEXT: usize = 3;

/// A file with more lines is not searched: the numbers of its lines would take more memory than most files.
const MAX_LINES: usize = 8_000_000;

/// Finds the positions of all hunks, in their order.
pub(super) fn place(file: &FileLines<'_>, hunks: &[Hunk<'_>]) -> Result<Vec<HunkPosition>, Misfit> {
    match place_at_header_lines(file, hunks) {
        Ok(placed) => Ok(placed),
        Err(hunk) if file.len() > MAX_LINES => {
            let (lines, most) = (file.len() as u64, MAX_LINES as u64);
            Err(Misfit { hunk, why: Why::TooManyLines { lines, most } })
        }
        Err(_) => PositionSearch::new(file, hunks).run(),
    }
}

/// Places each hunk at the line in its header. `Err` has the first hunk that does not match there.
fn place_at_header_lines(
    file: &FileLines<'_>,
    hunks: &[Hunk<'_>],
) -> Result<Vec<HunkPosition>, usize> {
    let mut placed = Vec::with_capacity(hunks.len());
    let mut floor = 0;
    for (at, hunk) in hunks.iter().enumerate() {
        let start = hunk.before.filter(|&start| start >= floor).ok_or(at)?;
        let sides = Sides::of(hunk);
        let fits = lines_match(file, start, &sides.old)
            && file_end_matches(file, hunk, start, sides.old.len())
            && !is_already_added(file, &sides, start);
        if !fits {
            return Err(at);
        }
        floor = start + sides.old.len();
        placed.push(HunkPosition { start, fit: Fit::Exact, already: false });
    }
    Ok(placed)
}

/// A side of a hunk.
#[derive(Debug, Clone, Copy)]
enum Side {
    Old,
    New,
}

/// The search for positions, if not every hunk is at the line in its header.
struct PositionSearch<'f, 'a> {
    file: &'f FileLines<'a>,
    hunks: &'f [Hunk<'f>],
    sides: Vec<Sides<'f>>,
    indexes: Vec<(Fit, LineIndex)>,
    budget: Budget,
    placed: Vec<Option<HunkPosition>>,
    /// The ranges of lines that the placed hunks change. They do not overlap.
    taken: BTreeSet<(usize, usize)>,
}

/// The possible positions of a hunk.
struct Candidates {
    /// Number of lines of the file before it, in ascending order.
    starts: Vec<usize>,
    fit: Fit,
    /// The lines there are its new lines.
    already: bool,
}

impl Fit {
    const ALL: [Fit; 6] = [
        Fit::Exact,
        Fit::Equivalent(MatchLevel::LineEndings),
        Fit::Equivalent(MatchLevel::TrailingBlanks),
        Fit::Equivalent(MatchLevel::Indentation),
        Fit::Equivalent(MatchLevel::Typography),
        Fit::Equivalent(MatchLevel::IndentationAndTypography),
    ];

    /// The significant part of a line.
    fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Fit::Exact => line.into(),
            Fit::Equivalent(level) => level.key(line),
        }
    }
}

impl<'f, 'a> PositionSearch<'f, 'a> {
    fn new(file: &'f FileLines<'a>, hunks: &'f [Hunk<'f>]) -> Self {
        PositionSearch {
            file,
            hunks,
            sides: hunks.iter().map(Sides::of).collect(),
            indexes: Vec::new(),
            budget: Budget::default(),
            placed: vec![None; hunks.len()],
            taken: BTreeSet::new(),
        }
    }

    fn run(mut self) -> Result<Vec<HunkPosition>, Misfit> {
        let mut open: Vec<(usize, Candidates)> = Vec::new();
        for at in 0..self.hunks.len() {
            let found = self.candidates(at).map_err(|why| Misfit { hunk: at, why })?;
            match found.starts[..] {
                [start] => {
                    self.commit(at, start, &found).map_err(|why| Misfit { hunk: at, why })?;
                }
                _ => open.push((at, found)),
            }
        }
        let mut fixed: Vec<usize> = (0..self.placed.len()).rev().collect();
        fixed.retain(|&at| self.placed[at].is_some());
        for (at, found) in open {
            // All earlier hunks are placed by now. Of the later ones, only those placed in the first pass.
            while fixed.last().is_some_and(|&next| next < at) {
                fixed.pop();
            }
            let neighbours = self.neighbours(at.checked_sub(1), fixed.last().copied());
            let put = self
                .choose(at, &found, &neighbours)
                .and_then(|start| self.commit(at, start, &found));
            put.map_err(|why| Misfit { hunk: at, why })?;
        }
        Ok(self.placed.into_iter().flatten().collect())
    }

    /// All positions at which a hunk matches, at the lowest level that has any. Empty if it has no lines to
    /// search for, only a line number.
    fn candidates(&mut self, at: usize) -> Result<Candidates, Why> {
        if self.sides[at].old.is_empty() {
            let starts = self.insertion_points(at)?;
            return Ok(Candidates { starts, fit: Fit::Exact, already: false });
        }
        if let Some(start) = self.already_applied_at_header_line(at) {
            return Ok(Candidates { starts: vec![start], fit: Fit::Exact, already: true });
        }
        let mut not_at_end = Vec::new();
        for fit in Fit::ALL {
            let starts = self.find_lines(at, fit, Side::Old)?;
            let (fitting, others): (Vec<usize>, Vec<usize>) =
                starts.into_iter().partition(|&start| self.file_end_matches(at, start, fit));
            if !fitting.is_empty() {
                return Ok(Candidates { starts: fitting, fit, already: false });
            }
            if not_at_end.is_empty() {
                not_at_end = others;
            }
        }
        if let Some(found) = self.find_already_applied(at)? {
            return Ok(found);
        }
        match not_at_end[..] {
            [] => Err(self.not_found(at)),
            [only] => Err(Why::NotAtEnd { elsewhere: Some(line_number(only)) }),
            _ => Err(Why::NotAtEnd { elsewhere: None }),
        }
    }

    /// Whether the hunk's claims about the end of the file hold for its old lines at `start`.
    fn file_end_matches(&self, at: usize, start: usize, fit: Fit) -> bool {
        let (hunk, count) = (&self.hunks[at], self.sides[at].old.len());
        match fit {
            Fit::Exact => file_end_matches(self.file, hunk, start, count),
            // The ending of the last line is a line ending too.
            Fit::Equivalent(_) => {
                let must_end = hunk.at_end || hunk.old_unended || hunk.new_unended;
                !must_end || start + count == self.file.len()
            }
        }
    }

    /// The positions of the lines of one side of a hunk.
    fn find_lines(&mut self, at: usize, fit: Fit, side: Side) -> Result<Vec<usize>, Why> {
        let lines = match side {
            Side::Old => &self.sides[at].old,
            Side::New => &self.sides[at].new,
        };
        // Blank lines say nothing about the position.
        if fit != Fit::Exact && lines.iter().all(|line| line.trim().is_empty()) {
            return Ok(Vec::new());
        }
        if self.indexes.iter().all(|(known, _)| *known != fit) {
            let all = self.sides.iter().flat_map(|sides| sides.old.iter().chain(&sides.new));
            self.indexes.push((fit, LineIndex::new(self.file, all.copied(), fit)));
        }
        let index = self.indexes.iter().find(|(known, _)| *known == fit);
        let found = index.and_then(|(_, index)| index.find(lines, fit, &mut self.budget));
        let mut starts = found.ok_or(Why::TooRepetitive)?;
        if let Fit::Equivalent(level) = fit {
            starts.retain(|&start| is_uniform(self.file, level, start, lines));
        }
        Ok(starts)
    }

    /// The position of the new lines, if they are at the line in the header and the old lines are not at
    /// theirs. The hunk was applied already, and other occurrences of its old lines are irrelevant.
    fn already_applied_at_header_line(&self, at: usize) -> Option<usize> {
        let (hunk, sides) = (&self.hunks[at], &self.sides[at]);
        let says_enough =
            sides.new.len() >= MAX_DROPPED_CONTEXT && sides.is_distinctive(self.file.len());
        if !says_enough || lines_match(self.file, hunk.before?, &sides.old) {
            return None;
        }
        let stands_there = |start: &usize| {
            lines_match(self.file, *start, &sides.new)
                && !is_partly_removed(self.file, sides, *start)
        };
        [hunk.before_new, hunk.before].into_iter().flatten().find(stands_there)
    }

    /// The positions of the new lines of a hunk whose old lines do not occur: it was applied already.
    fn find_already_applied(&mut self, at: usize) -> Result<Option<Candidates>, Why> {
        for fit in [
            Fit::Exact,
            Fit::Equivalent(MatchLevel::LineEndings),
            Fit::Equivalent(MatchLevel::TrailingBlanks),
        ] {
            if self.sides[at].new.is_empty() {
                break;
            }
            let mut starts = self.find_lines(at, fit, Side::New)?;
            let sides = &self.sides[at];
            starts.retain(|&start| !is_partly_removed(self.file, sides, start));
            let Hunk { before, before_new, .. } = self.hunks[at];
            let at_its_line = |start: &usize| [before, before_new].contains(&Some(*start));
            if let Some(start) = starts.iter().copied().find(at_its_line)
                && sides.new.len() >= MAX_DROPPED_CONTEXT
            {
                return Ok(Some(Candidates { starts: vec![start], fit, already: true }));
            }
            if !starts.is_empty() && sides.proves_applied(self.file.len()) {
                return Ok(Some(Candidates { starts, fit, already: true }));
            }
        }
        Ok(None)
    }

    /// The positions of a hunk that only adds lines. Empty if that depends on the other hunks.
    fn insertion_points(&mut self, at: usize) -> Result<Vec<usize>, Why> {
        let (hunk, lines) = (&self.hunks[at], self.file.len());
        let no_such_place = |named: String| Why::NoSuchPlace { named, lines: lines as u64 };
        if lines == 0 || hunk.at_end {
            let before = lines.checked_sub(self.sides[at].new.len());
            let again =
                before.filter(|&at_end| is_already_added(self.file, &self.sides[at], at_end));
            return Ok(vec![again.unwrap_or(lines)]);
        }
        if !hunk.anchors.is_empty() {
            let found = anchors::find(self.file, &hunk.anchors, &mut self.budget);
            return match found.ok_or(Why::TooRepetitive)? {
                Ok(anchors) => Ok(anchors.into_iter().map(|anchor| anchor + 1).collect()),
                Err(missing) => Err(no_such_place(missing.to_owned())),
            };
        }
        match hunk.before {
            None if hunk.appends => Ok(vec![lines]),
            None => Err(Why::Nowhere),
            Some(before) if before > lines => Err(no_such_place(format!("line {before}"))),
            Some(_) => Ok(Vec::new()),
        }
    }

    /// Chooses one of several positions.
    fn choose(
        &mut self,
        at: usize,
        found: &Candidates,
        neighbours: &Neighbours,
    ) -> Result<usize, Why> {
        let ambiguous = |starts: &[usize]| {
            let lines = starts.iter().copied().map(line_number).collect();
            let level = match found.fit {
                Fit::Exact => None,
                Fit::Equivalent(level) => Some(level),
            };
            Why::Ambiguous { lines, rung: level }
        };
        if found.starts.is_empty() {
            let predicted = neighbours.predicted(self.hunks[at].before);
            return match predicted[..] {
                [only] if only <= self.file.len() => Ok(only),
                _ => Err(ambiguous(&predicted)),
            };
        }
        let free: Vec<usize> =
            found.starts.iter().copied().filter(|&start| self.is_free(at, start)).collect();
        let between: Vec<usize> = free
            .iter()
            .copied()
            .filter(|&start| neighbours.contains(self.sides[at].changed(start)))
            .collect();
        let mut starts = if between.is_empty() { free } else { between };
        if let Some(&first) = found.starts.first().filter(|_| starts.is_empty()) {
            return Err(Why::Overlaps { line: line_number(first) });
        }
        if starts.len() > 1 && !self.hunks[at].anchors.is_empty() {
            let anchored = anchors::find(self.file, &self.hunks[at].anchors, &mut self.budget);
            if let Ok(anchors) = anchored.ok_or(Why::TooRepetitive)? {
                let behind = |anchor: usize| starts.iter().copied().find(|&start| start >= anchor);
                let mut narrowed: Vec<usize> = anchors.into_iter().filter_map(behind).collect();
                narrowed.dedup();
                starts = if narrowed.is_empty() { starts } else { narrowed };
            }
        }
        if let [only] = starts[..] {
            return Ok(only);
        }
        let predicted = neighbours.predicted(self.hunks[at].before);
        let hits: Vec<usize> =
            predicted.iter().copied().filter(|hit| starts.contains(hit)).collect();
        match hits[..] {
            [only] => Ok(only),
            [] => clearly_nearest(&starts, &predicted).ok_or_else(|| ambiguous(&starts)),
            _ => Err(ambiguous(&starts)),
        }
    }

    /// Position hints from the nearest placed hunks before and after.
    fn neighbours(&self, before: Option<usize>, after: Option<usize>) -> Neighbours {
        let moved = |other: usize| {
            let placed = self.placed[other]?;
            let changed = if placed.already {
                placed.start..placed.start + self.sides[other].new.len()
            } else {
                self.sides[other].changed(placed.start)
            };
            let by = self.hunks[other]
                .before
                .map(|before| placed.start.cast_signed().wrapping_sub(before.cast_signed()));
            Some((changed, by))
        };
        let (before, after) = (before.and_then(moved), after.and_then(moved));
        Neighbours {
            from: before.as_ref().map_or(0, |(changed, _)| changed.end),
            to: after.as_ref().map_or(usize::MAX, |(changed, _)| changed.start),
            moved: [before, after].into_iter().flatten().filter_map(|(_, by)| by).collect(),
        }
    }

    /// Whether no other hunk changes the same lines.
    fn is_free(&self, at: usize, start: usize) -> bool {
        let changed = self.sides[at].changed(start);
        let before_its_end = self.taken.range(..(changed.end, 0)).next_back();
        before_its_end.is_none_or(|&(_, end)| end <= changed.start)
    }

    fn commit(&mut self, at: usize, start: usize, found: &Candidates) -> Result<(), Why> {
        let again = match found.fit {
            Fit::Exact => is_already_added(self.file, &self.sides[at], start),
            Fit::Equivalent(_) => is_already_replaced(self.file, &self.sides[at], start),
        };
        let already = found.already || again;
        if !already {
            if !self.is_free(at, start) {
                return Err(Why::Overlaps { line: line_number(start) });
            }
            let changed = self.sides[at].changed(start);
            self.taken.insert((changed.start, changed.end));
        }
        // New lines that are already there match exactly.
        let fit = if again { Fit::Exact } else { found.fit };
        self.placed[at] = Some(HunkPosition { start, fit, already });
        Ok(())
    }

    fn not_found(&mut self, at: usize) -> Why {
        let wanted = self.sides[at].old.join("\n");
        let nearest = nearest_block(self.file.text, wanted.as_bytes(), self.file.terminator);
        let too_large_to_compare = nearest == Likeness::NoLine;
        let nearest = match nearest {
            Likeness::Block(nearest) => {
                let (line, expected, found) = nearest.differs;
                let (expected, found) = (expected.to_vec(), found.map(<[u8]>::to_vec));
                Some(Divergence { begins: nearest.first_line, line, expected, found })
            }
            Likeness::Nothing | Likeness::NoLine => None,
        };
        let with_less_context = self.with_less_context(at);
        Why::NotFound { nearest, too_large_to_compare, with_less_context }
    }

    /// The only line at which a hunk would match with less context.
    fn with_less_context(&mut self, at: usize) -> Option<u64> {
        let Sides { old, lead, trail, .. } = &self.sides[at];
        let (lead, trail) = (*lead, *trail);
        let index = self.indexes.iter().find(|(fit, _)| *fit == Fit::Exact);
        let (_, index) = index?;
        for less in 1..=MAX_DROPPED_CONTEXT.min(lead.max(trail)) {
            let (before, after) = (less.min(lead), less.min(trail));
            let inner = &old[before..old.len() - after];
            if inner.iter().all(|line| line.trim().is_empty()) {
                return None;
            }
            match index.find(inner, Fit::Exact, &mut self.budget)?[..] {
                [] => {}
                [only] => return Some(line_number(only)),
                _ => return None,
            }
        }
        None
    }
}

/// Whether one rule maps the indentation of these lines to that of the file, if the level ignores
/// indentation.
fn is_uniform(file: &FileLines<'_>, level: MatchLevel, start: usize, lines: &[&str]) -> bool {
    !level.ignores_indentation()
        || Reindent::between(file.text, lines, &file.ranges(start, lines.len())).is_some()
}

fn line_number(start: usize) -> u64 {
    start as u64 + 1
}
