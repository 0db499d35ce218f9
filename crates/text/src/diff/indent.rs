//! Scores a position between two lines as the beginning or end of a change, by indentation and blank lines.
//!
//! The weights are git's, which were fitted to changes rated by people.

use std::cmp::Ordering;
use std::ops::Add;

/// Deeper indentation makes no difference.
const MAX_INDENT: u8 = 200;

/// Limit of blank lines that are counted.
const MAX_BLANKS: i32 = 20;

const TAB_COLUMNS: u8 = 8;

/// The indentation of every line of a text. `None` for a blank line.
pub(super) struct Indents(Vec<Option<u8>>);

impl Indents {
    pub(super) fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Indents {
        Indents(lines.map(indent).collect())
    }
}

fn indent(line: &[u8]) -> Option<u8> {
    let mut columns = 0;
    for byte in line {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += TAB_COLUMNS - columns % TAB_COLUMNS,
            b'\n' | b'\r' => {}
            _ => return Some(columns),
        }
        if columns >= MAX_INDENT {
            return Some(MAX_INDENT);
        }
    }
    None
}

/// The score of one or two positions. Lower is better.
#[derive(Debug, Clone, Copy)]
pub(super) struct Score {
    indent: i32,
    penalty: i32,
}

impl Score {
    /// The score of the position before a line.
    pub(super) fn of(Indents(lines): &Indents, at: usize) -> Score {
        let (blanks_before, before) = skip_blank_lines(lines[..at].iter().rev());
        let here = lines.get(at).copied().flatten();
        let (blanks_behind, behind) =
            skip_blank_lines(lines.get(at + 1..).unwrap_or_default().iter());
        let mut penalty = 0;
        if before.is_none() && blanks_before == 0 {
            penalty += 1;
        }
        if at >= lines.len() {
            penalty += 21;
        }
        let blanks_from_here = if here.is_none() { 1 + blanks_behind } else { 0 };
        let blanks = blanks_before + blanks_from_here;
        penalty += 6 * blanks_from_here - 30 * blanks;
        let indent = here.or(behind);
        if let (Some(indent), Some(before)) = (indent, before) {
            let begins_block = behind.is_some_and(|behind| behind > indent);
            penalty += match (indent.cmp(&before), blanks > 0) {
                (Ordering::Equal, _) => 0,
                (Ordering::Greater, false) => -4,
                (Ordering::Greater, true) => 10,
                (Ordering::Less, true) => 17,
                (Ordering::Less, false) if begins_block => 24,
                (Ordering::Less, false) => 23,
            };
        }
        Score { indent: indent.map_or(-1, i32::from), penalty }
    }

    pub(super) fn is_as_good_as(&self, other: &Score) -> bool {
        let by_indent = match self.indent.cmp(&other.indent) {
            Ordering::Less => -60,
            Ordering::Equal => 0,
            Ordering::Greater => 60,
        };
        by_indent + self.penalty - other.penalty <= 0
    }
}

/// The number of blank lines up to the first other line, and the indentation of that line. `None` if the text
/// ends first.
fn skip_blank_lines<'a>(lines: impl Iterator<Item = &'a Option<u8>>) -> (i32, Option<u8>) {
    let mut blanks = 0;
    for indent in lines {
        if indent.is_some() {
            return (blanks, *indent);
        }
        blanks += 1;
        if blanks == MAX_BLANKS {
            return (blanks, Some(0));
        }
    }
    (blanks, None)
}

impl Add for Score {
    type Output = Score;

    fn add(self, other: Score) -> Score {
        Score { indent: self.indent + other.indent, penalty: self.penalty + other.penalty }
    }
}
