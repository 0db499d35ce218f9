//! Finds a text in a file, ignoring insignificant differences: line endings, trailing whitespace, uniform
//! indentation, typographic characters. Each level normalizes both sides and then compares them exactly.
//! There is no similarity score.

mod adapted_parts;
mod compare;
mod indent;
mod line_key;
mod required_literal;
mod rewrite;
mod typography;

use std::ops::Range;

pub use self::adapted_parts::Adaptation;
use self::compare::LevelSearch;
pub(crate) use self::indent::{Reindent, indent_step};
use self::required_literal::Anchor;

/// The ignored differences, from the fewest to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchLevel {
    /// Line endings.
    LineEndings,
    /// Line endings and trailing whitespace.
    TrailingBlanks,
    /// Also the indentation, if all lines differ by the same rule.
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

    /// A description of the difference, to follow "matched except for".
    pub fn words(self) -> &'static str {
        match self {
            MatchLevel::LineEndings => "line endings",
            MatchLevel::TrailingBlanks => "whitespace at the ends of lines",
            MatchLevel::Indentation => "its indentation",
            MatchLevel::Typography => "typographic quotes, dashes or spaces",
            MatchLevel::IndentationAndTypography => {
                "its indentation and typographic quotes, dashes or spaces"
            }
        }
    }

    /// Whether trailing whitespace is significant.
    fn compares_trailing_whitespace(self) -> bool {
        self == MatchLevel::LineEndings
    }

    /// Whether lines are compared without their indentation, and then only as whole lines.
    pub(crate) fn ignores_indentation(self) -> bool {
        matches!(self, MatchLevel::Indentation | MatchLevel::IndentationAndTypography)
    }

    /// Whether typographic characters equal plain ones.
    pub(crate) fn folds_typography(self) -> bool {
        matches!(self, MatchLevel::Typography | MatchLevel::IndentationAndTypography)
    }
}

/// A text to find, as lines without line endings.
#[derive(Debug, Clone)]
pub struct SoughtText {
    lines: Vec<String>,
}

impl SoughtText {
    /// Splits `text` at any line endings. A text that ends with a newline has an empty last line.
    pub fn new(text: &str) -> SoughtText {
        let lone = if text.contains('\n') { '\n' } else { '\r' };
        let lines = text.split(lone).map(|line| line.strip_suffix('\r').unwrap_or(line));
        SoughtText { lines: lines.map(str::to_owned).collect() }
    }
}

/// An equivalent of the sought text in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equivalent {
    difference: Difference,
    /// For each sought line, its range in the file.
    lines: Vec<Range<usize>>,
}

/// How a text in a file differs from the sought text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    level: MatchLevel,
    /// The sought text ends with a newline that the file does not have.
    missing_newline: bool,
}

impl Difference {
    /// The name of its level, for programs.
    pub fn name(self) -> &'static str {
        self.level.name()
    }

    /// A description, to follow "matched except for".
    pub fn words(self) -> String {
        const NEWLINE: &str = "a newline at its end that the file does not have";
        match self.level {
            level if !self.missing_newline => level.words().to_owned(),
            MatchLevel::LineEndings => NEWLINE.to_owned(),
            level => format!("{} and {NEWLINE}", level.words()),
        }
    }
}

impl Equivalent {
    /// The byte range in the file.
    pub fn range(&self) -> Range<usize> {
        let start = self.lines.first().map_or(0, |line| line.start);
        start..self.lines.last().map_or(start, |line| line.end)
    }

    /// How it differs from the sought text.
    pub fn difference(&self) -> Difference {
        self.difference
    }
}

/// Limit of matches that are searched for.
pub const MAX_EQUIVALENTS: usize = 100_000;

/// The matches of `wanted` in `text`, at the lowest level that has any, at most [`MAX_EQUIVALENTS`]. Empty if
/// no level has a match. `terminator` is the last byte of the line endings of `text`.
pub fn find_equivalents(text: &[u8], terminator: u8, wanted: &SoughtText) -> Vec<Equivalent> {
    for level in MatchLevel::ALL {
        let Some(anchor) = Anchor::of(wanted, level) else { continue };
        let found = LevelSearch { text, terminator, wanted, level }.find(&anchor);
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
