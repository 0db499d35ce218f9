//! Why a hunk has no place in a file.

use crate::equivalent::MatchLevel;

/// A hunk that cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Which of the file's hunks it is, from 0.
    pub hunk: usize,
    /// Why.
    pub why: Why,
}

/// Why a hunk cannot be placed. Lines are of the file, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Its lines are not in the file.
    NotFound {
        /// Where what is most like them stands.
        nearest: Option<Divergence>,
        /// The file was not searched for lines that are only alike, since it is too large.
        too_large_to_compare: bool,
        /// The only line at which it would fit with fewer lines of context.
        with_less_context: Option<u64>,
    },
    /// Its lines stand at several places, and nothing tells which is meant.
    Ambiguous {
        /// The lines at which they begin.
        lines: Vec<u64>,
        /// How they were found, if not letter for letter.
        rung: Option<MatchLevel>,
    },
    /// It fits only where another hunk of the patch changes the same lines.
    Overlaps {
        /// The line at which it would fit.
        line: u64,
    },
    /// It is said to be at the end of the file, and the end is another.
    NotAtEnd {
        /// The only other line at which it would fit.
        elsewhere: Option<u64>,
    },
    /// It only adds lines, and does not say where.
    Nowhere,
    /// It only adds lines, at a line or behind an anchor that the file does not have.
    NoSuchPlace {
        /// What it names: `line 12`, or the anchor.
        named: String,
        /// How many lines the file has.
        lines: u64,
    },
    /// Its lines are there, indented differently, and nothing tells how to indent what comes in.
    NoIndentation {
        /// The line at which they begin.
        line: u64,
    },
    /// It is not at the line that its header says, and the file has too many lines to look for it elsewhere.
    TooManyLines {
        /// How many lines the file has.
        lines: u64,
        /// How many it may have.
        most: u64,
    },
    /// The file repeats itself so often that looking for a place was given up.
    TooRepetitive,
}

/// The first line at which a file differs from what a hunk expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The line at which the text begins that is most like the hunk.
    pub begins: u64,
    /// The line that differs.
    pub line: u64,
    /// What the hunk has there.
    pub expected: Vec<u8>,
    /// What stands there; nothing, where the file ends.
    pub found: Option<Vec<u8>>,
}
