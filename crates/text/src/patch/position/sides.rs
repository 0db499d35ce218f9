//! What a hunk expects and what it makes, held against a file letter for letter.

use std::ops::Range;

use crate::patch::file_lines::FileLines;
use crate::patch::hunk::{Hunk, Sign};

/// A new side shorter than this may stand in a file by chance.
const TELLING_BYTES: usize = 16;
/// Where lines only went, so many others have to stand together to show it.
const TELLING_LINES: usize = 4;

/// The lines of a hunk on both sides.
pub(super) struct Sides<'a> {
    pub(super) old: Vec<&'a str>,
    pub(super) new: Vec<&'a str>,
    /// Whether a line that stays says something: without one, nothing shows that new lines stand where they were meant to.
    has_context: bool,
    /// How many old lines come before the first that changes, and after the last.
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

    /// The lines that change, for old lines that begin at `start`.
    pub(super) fn changed(&self, start: usize) -> Range<usize> {
        start + self.lead..start + self.old.len() - self.trail
    }

    /// Whether lines only go, in one place.
    fn only_removes(&self) -> bool {
        self.new.len() == self.lead + self.trail
    }

    /// Whether the new side stands in the file because the hunk was applied: it says enough, and has lines around it.
    pub(super) fn proves_applied(&self, lines: usize) -> bool {
        (self.has_context || self.new.len() == lines) && self.is_telling(lines)
    }

    /// Whether the new side says enough to be known by it.
    pub(super) fn is_telling(&self, lines: usize) -> bool {
        let ink = || self.new.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        match self.only_removes() {
            true => self.lead > 0 && self.trail > 0 && ink().count() >= TELLING_LINES,
            false => self.new.len() == lines || ink().map(str::len).sum::<usize>() >= TELLING_BYTES,
        }
    }
}

/// Whether these lines stand at a place, letter for letter.
pub(super) fn stands(file: &FileLines<'_>, start: usize, lines: &[&str]) -> bool {
    let fits = start.checked_add(lines.len()).is_some_and(|end| end <= file.len());
    fits && lines.iter().enumerate().all(|(at, line)| file.line(start + at) == line.as_bytes())
}

/// Whether what a hunk says about the end of the file holds for `count` lines at `start`, letter for
/// letter.
pub(super) fn ends_rightly(
    file: &FileLines<'_>,
    hunk: &Hunk<'_>,
    start: usize,
    count: usize,
) -> bool {
    let at_end = start + count == file.len();
    match hunk.old_unended {
        true => at_end && !file.is_ended(),
        false => {
            let must_end = hunk.at_end || hunk.new_unended;
            // A last line without an end is none with one, if the hunk has it.
            let ended = !at_end || count == 0 || file.is_ended();
            (!must_end || at_end) && ended
        }
    }
}

/// Whether what a hunk makes stands already where its old lines were found letter for letter: it only
/// adds, and at one of its ends or without any context, so that they would still be there.
pub(super) fn stands_already(file: &FileLines<'_>, sides: &Sides<'_>, start: usize) -> bool {
    let Sides { old, new, lead, trail, .. } = sides;
    if old.is_empty() {
        return sides.is_telling(file.len()) && stands(file, start, new);
    }
    if new.len() <= old.len() {
        return false;
    }
    let longer = new.len() - old.len();
    let behind = *trail == 0 && new.starts_with(old) && stands(file, start, new);
    let before = || {
        let was_at = start.checked_sub(longer).filter(|_| *lead == 0 && new.ends_with(old));
        was_at.is_some_and(|at| stands(file, at, new))
    };
    behind || before()
}

/// Whether some of what a hunk removes is still there, though what is around it stands together at
/// `start`: the end of a block may look like the end of the one before, of which the hunk has the context.
pub(super) fn is_partly_there(file: &FileLines<'_>, sides: &Sides<'_>, start: usize) -> bool {
    let Sides { old, lead, trail, .. } = sides;
    let removed = &old[*lead..old.len() - trail];
    let seam = start + lead;
    let same = |&(at, line): &(usize, &&str)| file.line(at) == line.as_bytes();
    let before = (0..seam).rev().zip(removed.iter().rev()).take_while(same).count();
    let behind = (seam..file.len()).zip(removed).take_while(same).count();
    sides.only_removes() && (before > *lead || behind > *trail)
}

/// Whether what a hunk makes stands already where its old lines were found by a rung: what differs may be
/// what the hunk has changed.
pub(super) fn stands_instead(file: &FileLines<'_>, sides: &Sides<'_>, start: usize) -> bool {
    // Of fewer lines it may be the beginning that stands there, and the rest is still to go.
    sides.new.len() >= sides.old.len() && stands(file, start, &sides.new)
}
