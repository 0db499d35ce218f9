//! Reads the lines of a file from its end.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// The number of bytes that are read at once.
const CHUNK: u64 = 256 << 10;

/// Passes the lines before `end` to `visit`, the last one first. `visit` gets a line without its newline and its
/// offset. Text after the last newline is not a line yet. A line that is longer than `max_line` is skipped.
pub(super) fn lines_before(
    file: &File,
    end: u64,
    max_line: usize,
    mut visit: impl FnMut(&[u8], u64) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let mut at = end;
    // The beginning of the line that the last chunk cut off.
    let mut rest: Vec<u8> = Vec::new();
    let mut is_complete = false;
    while at > 0 {
        let start = at.saturating_sub(CHUNK);
        let mut bytes = vec![0; usize::try_from(at - start).unwrap_or(0)];
        file.read_exact_at(&mut bytes, start)?;
        bytes.append(&mut rest);
        let mut line_end = bytes.len();
        while let Some(newline) = memchr::memrchr(b'\n', &bytes[..line_end]) {
            let line = &bytes[newline + 1..line_end];
            if is_complete
                && line.len() <= max_line
                && visit(line, start + newline as u64 + 1).is_break()
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
        at = start;
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
    fn lines_may_cross_chunks_and_long_ones_are_skipped() {
        let chunk = usize::try_from(CHUNK).unwrap();
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
