//! The part of a sought text that must occur literally in the file. If it does not occur, nothing else is
//! compared, so a miss costs one search, independent of the size of the file.

use super::typography::has_typographic_variants;
use super::{MatchLevel, SoughtText};

/// A part of a line of the sought text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor<'a> {
    pub(super) piece: &'a str,
    /// The line that contains it, from 0.
    pub(super) line: usize,
    /// Its byte offset in that line.
    pub(super) at: usize,
}

impl<'a> Anchor<'a> {
    /// The longest part that does not vary at this level. The first of several equally long ones.
    pub(super) fn of(wanted: &'a SoughtText, level: MatchLevel) -> Option<Anchor<'a>> {
        let mut best: Option<Anchor<'a>> = None;
        for (line, text) in wanted.lines.iter().enumerate() {
            for piece in fixed_parts(text, level) {
                if best.as_ref().is_none_or(|best| best.piece.len() < piece.len()) {
                    let at = piece.as_ptr() as usize - text.as_ptr() as usize;
                    best = Some(Anchor { piece, line, at });
                }
            }
        }
        best
    }
}

/// The parts of a line that do not vary.
fn fixed_parts(line: &str, level: MatchLevel) -> impl Iterator<Item = &str> {
    let line = line.trim_matches(WHITESPACE);
    let varies = move |c: char| level.folds_typography() && has_typographic_variants(c);
    line.split(varies).filter(|piece| !piece.is_empty())
}

/// Whitespace within a line.
pub(super) const WHITESPACE: [char; 2] = [' ', '\t'];
