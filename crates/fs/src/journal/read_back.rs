//! Reads the lines of a file from its end.

use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;

/// The number of bytes that are read first. Most callers need only the last line.
const FIRST_CHUNK: u64 = 4 << 10;

/// The most bytes that are read at once.
const MAX_CHUNK: u64 = 256 << 10;

/// The parts of the first `end` bytes of a file, the last one first. They become longer.
pub(super) fn chunks_before(end: u64) -> impl Iterator<Item = Range<u64>> {
    let (mut at, mut length) = (end, FIRST_CHUNK);
    std::iter::from_fn(move || {
        let chunk = at.saturating_sub(length)..at;
        (at, length) = (chunk.start, (2 * length).min(MAX_CHUNK));
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Reads a part of a file.
pub(super) fn read_chunk(file: &File, chunk: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(chunk.end - chunk.start).unwrap_or(0)];
    file.read_exact_at(&mut bytes, chunk.start)?;
    Ok(bytes)
}

/// Passes the lines before `end` to `visit`, the last one first. `visit` gets a line without its newline and its
/// offset. Text after the last newline is not a line yet. A line that is longer than `max_line` is skipped.
pub(super) fn lines_before(
    file: &File,
    end: u64,
    max_line: usize,
    mut visit: impl FnMut(&[u8], u64) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    // The beginning of the line that the last chunk cut off.
    let mut rest: Vec<u8> = Vec::new();
    let mut is_complete = false;
    for chunk in chunks_before(end) {
        let mut bytes = read_chunk(file, &chunk)?;
        bytes.append(&mut rest);
        let mut line_end = bytes.len();
        while let Some(newline) = memchr::memrchr(b'\n', &bytes[..line_end]) {
            let line = &bytes[newline + 1..line_end];
            if is_complete
                && line.len() <= max_line
                && visit(line, chunk.start + newline as u64 + 1).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            is_complete = true;
            line_end = newline;
        }
        bytes.truncate(line_end);
        // A line that is too long is dropped in pieces; its first piece is short of its end and is dropped as well.
        if bytes.len() > max_line {
            bytes.clear();
            is_complete = false;
        }
        rest = bytes;
    }
    if is_complete && rest.len() <= max_line && visit(&rest, 0).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(text: &[u8], max_line: usize) -> Vec<(Vec<u8>, u64)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut all = Vec::new();
        let end = text.len() as u64;
        let seen = lines_before(&file, end, max_line, |line, at| {
            all.push((line.to_vec(), at));
            ControlFlow::Continue(())
        });
        assert!(seen.unwrap().is_continue());
        all
    }

    #[test]
    fn lines_come_last_first_and_an_unfinished_one_is_left_out() {
        let line = |text: &str, at| (text.as_bytes().to_vec(), at);
        assert_eq!(read(b"", 9), []);
        assert_eq!(read(b"half", 9), []);
        assert_eq!(read(b"a\n\nbc\nhalf", 9), [line("bc", 3), line("", 2), line("a", 0)]);
    }

    #[test]
    fn the_chunks_are_the_whole_file() {
        for end in [0, 1, FIRST_CHUNK, FIRST_CHUNK + 1, 9 * MAX_CHUNK + 7] {
            let chunks: Vec<Range<u64>> = chunks_before(end).collect();
            assert_eq!(chunks.iter().map(|chunk| chunk.end - chunk.start).sum::<u64>(), end);
            assert!(chunks.windows(2).all(|pair| pair[0].start == pair[1].end));
            assert!(chunks.last().is_none_or(|last| last.start == 0));
        }
    }

    #[test]
    fn lines_may_cross_chunks_and_long_ones_are_skipped() {
        let chunk = usize::try_from(MAX_CHUNK).unwrap();
        let long = "x".repeat(chunk * 2 + 10);
        let wide = "y".repeat(chunk + 7);
        let text = format!("first\n{long}\nsecond\n{wide}\nlast\n");
        let all = read(text.as_bytes(), chunk + 100);
        let lines: Vec<&[u8]> = all.iter().map(|(line, _)| line.as_slice()).collect();
        let expected: [&[u8]; 4] = [b"last", wide.as_bytes(), b"second", b"first"];
        assert_eq!(lines, expected);
        assert!(all.iter().all(|(line, at)| {
            let at = usize::try_from(*at).unwrap();
            &text.as_bytes()[at..at + line.len()] == line.as_slice()
        }));
    }
}
