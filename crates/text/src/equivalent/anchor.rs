//! The piece of a wanted text that must stand in the file as it is, whatever else may vary: where it
//! is not, nothing more needs to be compared, so a miss costs one search however large the file is.

use super::typography::may_vary;
use super::{MatchLevel, SoughtText};

/// A piece of a line of a wanted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor<'a> {
    /// What it says.
    pub(super) piece: &'a str,
    /// Which line it is of, from 0.
    pub(super) line: usize,
    /// At which byte of that line it begins.
    pub(super) at: usize,
}

impl<'a> Anchor<'a> {
    /// The longest piece that does not vary at this rung, the first of equals.
    pub(super) fn of(wanted: &'a SoughtText, rung: MatchLevel) -> Option<Anchor<'a>> {
        let mut best: Option<Anchor<'a>> = None;
        for (line, text) in wanted.lines.iter().enumerate() {
            for piece in pieces(text, rung) {
                if best.as_ref().is_none_or(|best| best.piece.len() < piece.len()) {
                    let at = piece.as_ptr() as usize - text.as_ptr() as usize;
                    best = Some(Anchor { piece, line, at });
                }
            }
        }
        best
    }
}

/// The pieces of a line that do not vary.
fn pieces(line: &str, rung: MatchLevel) -> impl Iterator<Item = &str> {
    let line = line.trim_matches(BLANKS);
    let varies = move |c: char| rung.folds() && may_vary(c);
    line.split(varies).filter(|piece| !piece.is_empty())
}

/// What a blank is, inside a line.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];
