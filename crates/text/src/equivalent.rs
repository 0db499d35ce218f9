//! Where a text stands in a file but for what says nothing: line endings, blanks at the ends of
//! lines, uniform indentation, typographic characters. Each rung of this ladder makes both sides
//! plain and then compares them letter for letter. Nothing here is judged by likeness.

mod anchor;
mod compare;
mod indent;
mod line_key;
mod rewrite;
mod typography;

use std::ops::Range;

use self::anchor::Anchor;
use self::compare::Compare;
pub(crate) use self::indent::{Reindent, step_of};

/// What may differ, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchLevel {
    /// How lines end.
    LineEndings,
    /// Blanks at the ends of lines as well.
    TrailingBlanks,
    /// And the indentation, by the same for all lines.
    Indentation,
    /// Typographic quotes, dashes and spaces, but not the indentation.
    Typography,
    /// All of these.
    IndentationAndTypography,
}

impl MatchLevel {
    const ALL: [MatchLevel; 5] = [
        MatchLevel::LineEndings,
        MatchLevel::TrailingBlanks,
        MatchLevel::Indentation,
        MatchLevel::Typography,
        MatchLevel::IndentationAndTypography,
    ];

    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            MatchLevel::LineEndings => "line_endings",
            MatchLevel::TrailingBlanks => "trailing_blanks",
            MatchLevel::Indentation => "indentation",
            MatchLevel::Typography => "typography",
            MatchLevel::IndentationAndTypography => "indentation_and_typography",
        }
    }

    /// What differs, in words: "it is there but for …".
    pub fn words(self) -> &'static str {
        match self {
            MatchLevel::LineEndings => "line endings",
            MatchLevel::TrailingBlanks => "blanks at the ends of lines",
            MatchLevel::Indentation => "its indentation",
            MatchLevel::Typography => "typographic quotes, dashes or spaces",
            MatchLevel::IndentationAndTypography => {
                "its indentation and typographic quotes, dashes or spaces"
            }
        }
    }

    /// Whether blanks at the ends of lines count.
    fn keeps_trailing(self) -> bool {
        self == MatchLevel::LineEndings
    }

    /// Whether lines are compared without their indentation, and then as a whole.
    pub(crate) fn indents(self) -> bool {
        matches!(self, MatchLevel::Indentation | MatchLevel::IndentationAndTypography)
    }

    /// Whether typographic characters are as good as plain ones.
    pub(crate) fn folds(self) -> bool {
        matches!(self, MatchLevel::Typography | MatchLevel::IndentationAndTypography)
    }
}

/// A text as its lines, without their ends, to be looked for.
#[derive(Debug, Clone)]
pub struct SoughtText {
    lines: Vec<String>,
}

impl SoughtText {
    /// The lines of `text`, however it ends them. A text that ends with a newline has an empty last
    /// line.
    pub fn new(text: &str) -> SoughtText {
        let lone = if text.contains('\n') { '\n' } else { '\r' };
        let lines = text.split(lone).map(|line| line.strip_suffix('\r').unwrap_or(line));
        SoughtText { lines: lines.map(str::to_owned).collect() }
    }
}

/// A place in a file at which a wanted text stands, at some rung.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equivalent {
    rung: MatchLevel,
    /// For each wanted line, what stands for it in the file.
    lines: Vec<Range<usize>>,
}

impl Equivalent {
    /// The bytes that stand for the wanted text.
    pub fn range(&self) -> Range<usize> {
        let start = self.lines.first().map_or(0, |line| line.start);
        start..self.lines.last().map_or(start, |line| line.end)
    }

    /// The rung at which it was found.
    pub fn rung(&self) -> MatchLevel {
        self.rung
    }
}

/// No more places are looked for than this.
pub const MAX_EQUIVALENTS: usize = 100_000;

/// The places at which `wanted` stands in `text`, at the lowest rung that has one; none, if no rung
/// has. At most [`MAX_EQUIVALENTS`]. `terminator` is the byte that ends the lines of `text`.
pub fn find_equivalents(text: &[u8], terminator: u8, wanted: &SoughtText) -> Vec<Equivalent> {
    for rung in MatchLevel::ALL {
        let Some(anchor) = Anchor::of(wanted, rung) else { continue };
        let found = Compare { text, terminator, wanted, rung }.places(&anchor);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
