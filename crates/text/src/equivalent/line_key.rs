//! A line as it is compared at a rung: two whole lines are equivalent if these are the same bytes and,
//! where indentation does not count, one rule leads from each line's to the other's.

use std::borrow::Cow;

use super::MatchLevel;
use super::indent::blanks_before;
use super::typography::{may_vary, plain};

impl MatchLevel {
    /// What counts of a line, given without its `\n`.
    pub(crate) fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.keeps_trailing() {
            let ink = line.iter().rposition(|byte| !b" \t".contains(byte));
            line = &line[..ink.map_or(0, |at| at + 1)];
        }
        if self.indents() {
            line = &line[blanks_before(line)..];
        }
        match std::str::from_utf8(line) {
            // In ASCII nothing stands for another.
            Ok(text) if self.folds() && !text.is_ascii() && text.contains(may_vary) => {
                text.chars().map(plain).collect::<String>().into_bytes().into()
            }
            _ => line.into(),
        }
    }
}
