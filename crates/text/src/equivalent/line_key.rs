//! A normalized line for comparison. Two whole lines are equivalent at a level if their keys are equal and,
//! where indentation is ignored, one rule maps the indentation of all lines.

use std::borrow::Cow;

use super::MatchLevel;
use super::indent::leading_whitespace;
use super::typography::{has_typographic_variants, plain};

impl MatchLevel {
    /// The significant part of a line, given without its `\n`.
    pub(crate) fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.compares_trailing_whitespace() {
            let ink = line.iter().rposition(|byte| !b" \t".contains(byte));
            line = &line[..ink.map_or(0, |at| at + 1)];
        }
        if self.ignores_indentation() {
            line = &line[leading_whitespace(line)..];
        }
        match std::str::from_utf8(line) {
            // ASCII has no variants of ASCII.
            Ok(text)
                if self.folds_typography()
                    && !text.is_ascii()
                    && text.contains(has_typographic_variants) =>
            {
                text.chars().map(plain).collect::<String>().into_bytes().into()
            }
            _ => line.into(),
        }
    }
}
