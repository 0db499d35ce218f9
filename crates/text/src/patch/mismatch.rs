//! Why a hunk does not apply.

use crate::equivalent::MatchLevel;

/// A hunk that does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The index of the hunk in its file, from 0.
    pub hunk: usize,
    /// The reason.
    pub why: Why,
}

/// Why a hunk does not apply. Lines are numbers in the file, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Its lines are not in the file.
    NotFound {
        /// The most similar block.
        nearest: Option<Divergence>,
        /// The file is too large to be searched for similar lines.
        too_large_to_compare: bool,
        /// The only line at which it would fit with less context.
        with_less_context: Option<u64>,
    },
    /// Its lines occur several times, and nothing determines the position.
    Ambiguous {
        /// The first lines of the occurrences.
        lines: Vec<u64>,
        /// The ignored differences, if they did not match exactly.
        rung: Option<MatchLevel>,
    },
    /// It fits only where another hunk of the patch changes the same lines.
    Overlaps {
        /// The line at which it would fit.
        line: u64,
    },
    /// It claims to be at the end of the file, but does not match there.
    NotAtEnd {
        /// The only other line at which it would fit.
        elsewhere: Option<u64>,
    },
    /// It only adds lines and gives no position.
    Nowhere,
    /// It only adds lines, at a line or after an anchor that the file does not have.
    NoSuchPlace {
        /// The position that it gives: `line 12`, or the anchor.
        named: String,
        /// Number of lines of the file.
        lines: u64,
    },
    /// Its lines are there with other indentation, which does not determine the indentation of the added
    /// lines.
    NoIndentation {
        /// The first of its lines.
        line: u64,
    },
    /// It is not at the line in its header, and the file has too many lines to be searched.
    TooManyLines {
        /// Number of lines of the file.
        lines: u64,
        /// The limit.
        most: u64,
    },
    /// The file is so repetitive that the search was given up.
    TooRepetitive,
}

/// The first line at which a file differs from a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The first line of the most similar block.
    pub begins: u64,
    /// The line that differs.
    pub line: u64,
    /// The line of the hunk.
    pub expected: Vec<u8>,
    /// The line of the file. `None` if the file ends before it.
    pub found: Option<Vec<u8>>,
}
