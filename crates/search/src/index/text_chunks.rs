//! Splits a text into chunks at line ends.
//!
//! A match within a line is within one chunk. Large generated files contain nearly every trigram, so as a
//! whole they would be read for every pattern. Their chunks are as selective as other files.

use std::ops::Range;

/// Size of a chunk. A chunk with a longer line is larger.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// Splits a text. An empty text is one chunk.
pub(super) fn chunks(text: &[u8], size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let rest = &text[start..];
        let end = if rest.len() <= size {
            text.len()
        } else {
            match memchr::memrchr(b'\n', &rest[..size]) {
                Some(line_end) => start + line_end + 1,
                None => memchr::memchr(b'\n', rest).map_or(text.len(), |end| start + end + 1),
            }
        };
        next = (end < text.len()).then_some(end);
        Some(start..end)
    })
}

/// The range whose trigrams belong to a chunk: the chunk and two more bytes, so that no trigram is lost at a
/// boundary.
pub(super) fn with_overlap(text: &[u8], chunk: &Range<usize>) -> Range<usize> {
    chunk.start..(chunk.end + 2).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_lines_and_cover_the_text() {
        let ends = |text: &str| {
            let mut end = 0;
            let chunks = chunks(text.as_bytes(), 4).map(|chunk| {
                assert_eq!(chunk.start, std::mem::replace(&mut end, chunk.end));
                chunk.end
            });
            chunks.collect::<Vec<_>>()
        };
        assert_eq!(ends(""), [0]);
        assert_eq!(ends("a\nb\nc\n"), [4, 6]);
        assert_eq!(ends("a long line\nb\n"), [12, 14]);
        assert_eq!(ends("no end of line"), [14]);
        assert_eq!(ends("a\nno end"), [2, 8]);
    }
}
