//! A text cut into chunks, at the ends of lines.
//!
//! A match within a line is within a chunk. Large generated files have every trigram somewhere, so as one
//! piece they would be looked into for every question; their chunks are as telling as other files.

use std::ops::Range;

/// So many bytes a chunk has, but for one with a longer line.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// Cuts a text; one without a byte is one chunk too.
pub(super) fn chunks(text: &[u8], size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let rest = &text[start..];
        let end = match rest.len() <= size {
            true => text.len(),
            false => match memchr::memrchr(b'\n', &rest[..size]) {
                Some(line_end) => start + line_end + 1,
                None => memchr::memchr(b'\n', rest).map_or(text.len(), |end| start + end + 1),
            },
        };
        next = (end < text.len()).then_some(end);
        Some(start..end)
    })
}

/// The bytes whose trigrams belong to a chunk: its own and two more, so that none is lost at a cut.
pub(super) fn with_overlap(text: &[u8], chunk: &Range<usize>) -> Range<usize> {
    chunk.start..(chunk.end + 2).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_lines_and_together_the_text() {
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
