//! Finds the line around a position.

use std::ops::Range;

/// The line that contains an offset, without its `\n`.
pub(crate) fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |before| before + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |after| at + after);
    start..end
}
