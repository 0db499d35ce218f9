//! The old and the new lines of a hunk, compared exactly with a file.

use std::ops::Range;

use crate::patch::file_lines::FileLines;
use crate::patch::hunk::{Hunk, Sign};

/// A shorter new side may occur in a file by chance.
const MIN_DISTINCTIVE_BYTES: usize = 16;
/// For pure removals, this many remaining lines must be consecutive.
const MIN_DISTINCTIVE_LINES: usize = 4;

/// The lines of a hunk on both sides.
pub(super) struct Sides<'a> {
    pub(super) old: Vec<&'a str>,
    pub(super) new: Vec<&'a str>,
    /// Whether a context line is not blank. Otherwise nothing shows that new lines are at their intended
    /// position.
    has_context: bool,
    /// Number of context lines before the first change, and after the last.
    pub(super) lead: usize,
    pub(super) trail: usize,
}

impl<'a> Sides<'a> {
    pub(super) fn of(hunk: &Hunk<'a>) -> Sides<'a> {
        let kept = |sign: &Sign| *sign == Sign::Keep;
        let signs = || hunk.lines.iter().map(|line| line.sign);
        Sides {
            old: hunk.old_lines().collect(),
            new: hunk.new_lines().collect(),
            has_context: hunk
                .lines
                .iter()
                .any(|line| kept(&line.sign) && !line.text.trim().is_empty()),
            lead: signs().take_while(kept).count(),
            trail: signs().rev().take_while(kept).count(),
        }
    }

    /// The range of changed lines, if the old lines begin at `start`.
    pub(super) fn changed(&self, start: usize) -> Range<usize> {
        start + self.lead..start + self.old.len() - self.trail
    }

    /// Whether it only removes lines, in one position.
    fn only_removes(&self) -> bool {
        self.new.len() == self.lead + self.trail
    }

    /// Whether the new side occurs in the file because the hunk was applied: it is distinctive and has
    /// context.
    pub(super) fn proves_applied(&self, lines: usize) -> bool {
        (self.has_context || self.new.len() == lines) && self.is_distinctive(lines)
    }

    /// Whether the new side is distinctive enough to be recognized.
    pub(super) fn is_distinctive(&self, lines: usize) -> bool {
        let ink = || self.new.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        if self.only_removes() {
            self.lead > 0 && self.trail > 0 && ink().count() >= MIN_DISTINCTIVE_LINES
        } else {
            self.new.len() == lines || ink().map(str::len).sum::<usize>() >= MIN_DISTINCTIVE_BYTES
        }
    }
}

/// Whether these lines are at a position, exactly.
pub(super) fn lines_match(file: &FileLines<'_>, start: usize, lines: &[&str]) -> bool {
    let fits = start.checked_add(lines.len()).is_some_and(|end| end <= file.len());
    fits && lines.iter().enumerate().all(|(at, line)| file.line(start + at) == line.as_bytes())
}

/// Whether the hunk's claims about the end of the file hold for `count` lines at `start`, exactly.
pub(super) fn file_end_matches(
    file: &FileLines<'_>,
    hunk: &Hunk<'_>,
    start: usize,
    count: usize,
) -> bool {
    let at_end = start + count == file.len();
    if hunk.old_unended {
        at_end && !file.is_ended()
    } else {
        let must_end = hunk.at_end || hunk.new_unended;
        // A last line without a newline does not match a hunk line that has one.
        let ended = !at_end || count == 0 || file.is_ended();
        (!must_end || at_end) && ended
    }
}

/// Whether the new lines are already at a position where the old lines match exactly. That is possible for a
/// hunk that only adds lines, at one of its ends or without context.
pub(super) fn is_already_added(file: &FileLines<'_>, sides: &Sides<'_>, start: usize) -> bool {
    let Sides { old, new, lead, trail, .. } = sides;
    if old.is_empty() {
        return sides.is_distinctive(file.len()) && lines_match(file, start, new);
    }
    if new.len() <= old.len() {
        return false;
    }
    let longer = new.len() - old.len();
    let behind = *trail == 0 && new.starts_with(old) && lines_match(file, start, new);
    let before = || {
        let was_at = start.checked_sub(longer).filter(|_| *lead == 0 && new.ends_with(old));
        was_at.is_some_and(|at| lines_match(file, at, new))
    };
    behind || before()
}

/// Whether some of the removed lines are still there, although the lines around them are consecutive at
/// `start`. The end of a block may equal the end of the previous one, which the hunk has as context.
pub(super) fn is_partly_removed(file: &FileLines<'_>, sides: &Sides<'_>, start: usize) -> bool {
    let Sides { old, lead, trail, .. } = sides;
    let removed = &old[*lead..old.len() - trail];
    let seam = start + lead;
    let same = |&(at, line): &(usize, &&str)| file.line(at) == line.as_bytes();
    let before = (0..seam).rev().zip(removed.iter().rev()).take_while(same).count();
    let behind = (seam..file.len()).zip(removed).take_while(same).count();
    sides.only_removes() && (before > *lead || behind > *trail)
}

/// Whether the new lines are already at a position where the old lines match at a level. The ignored
/// difference may be the change of the hunk.
pub(super) fn is_already_replaced(file: &FileLines<'_>, sides: &Sides<'_>, start: usize) -> bool {
    // If the new side is shorter, the file may contain its lines as the beginning of the old side.
    sides.new.len() >= sides.old.len() && lines_match(file, start, &sides.new)
}
