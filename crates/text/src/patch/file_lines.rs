//! The lines of a file, each with its line ending.

use std::ops::Range;

/// Number of lines between two milestones.
const MILESTONE_LINES: usize = 64;

/// The lines of a file.
#[derive(Debug, Clone)]
pub(super) struct FileLines<'a> {
    pub(super) text: &'a [u8],
    /// The start of every `MILESTONE_LINES`th line. Storing all starts would take more memory than a file of
    /// short lines.
    milestones: Vec<usize>,
    len: usize,
    pub(super) terminator: u8,
    /// All lines end in `\r\n` and the patch has no `\r`, so a `\r` at a line end is not part of the line.
    pub(super) hides_cr: bool,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(text: &'a [u8], terminator: u8, hides_cr: bool) -> FileLines<'a> {
        let (mut milestones, mut ended) = (vec![0], 0);
        for end in memchr::memchr_iter(terminator, text) {
            ended += 1;
            if ended % MILESTONE_LINES == 0 {
                milestones.push(end + 1);
            }
        }
        let is_ended = text.last().is_none_or(|last| *last == terminator);
        let len = ended + usize::from(!is_ended);
        FileLines { text, milestones, len, terminator, hides_cr }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A line with its line ending.
    fn line_with_ending(&self, at: usize) -> &'a [u8] {
        let rest = &self.text[self.start(at)..];
        let end = memchr::memchr(self.terminator, rest).map_or(rest.len(), |end| end + 1);
        &rest[..end]
    }

    /// A line without its line ending.
    pub(super) fn line(&self, at: usize) -> &'a [u8] {
        let whole = self.line_with_ending(at);
        let line = whole.strip_suffix(&[self.terminator]).unwrap_or(whole);
        line.strip_suffix(b"\r").filter(|_| self.hides_cr).unwrap_or(line)
    }

    /// The line ending, including a `\r`. `None` for a last line without one.
    pub(super) fn ending(&self, at: usize) -> Option<&'a [u8]> {
        let line = self.line_with_ending(at).strip_suffix(&[self.terminator])?;
        let cr = usize::from(self.terminator == b'\n' && line.ends_with(b"\r"));
        Some(&self.line_with_ending(at)[line.len() - cr..])
    }

    /// The byte offset of a line. After the last line, the end of the text.
    pub(super) fn start(&self, at: usize) -> usize {
        let milestone =
            self.milestones.get(at / MILESTONE_LINES).copied().unwrap_or(self.text.len());
        match at % MILESTONE_LINES {
            0 => milestone,
            behind => memchr::memchr_iter(self.terminator, &self.text[milestone..])
                .nth(behind - 1)
                .map_or(self.text.len(), |end| milestone + end + 1),
        }
    }

    /// Whether the last line has a line ending.
    pub(super) fn is_ended(&self) -> bool {
        self.text.last().is_none_or(|last| *last == self.terminator)
    }

    /// The byte ranges of lines, without their line endings.
    pub(super) fn ranges(&self, start: usize, count: usize) -> Vec<Range<usize>> {
        let mut from = self.start(start);
        let lines = (start..start + count).map(|at| {
            let range = from..from + self.line(at).len();
            from += self.line_with_ending(at).len();
            range
        });
        lines.collect()
    }

    /// All lines, without their line endings.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        let mut rest = self.text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr::memchr(self.terminator, rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            Some(line.strip_suffix(b"\r").filter(|_| self.hides_cr).unwrap_or(line))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_by_its_number() {
        let full = format!("{}b", "a\n".repeat(MILESTONE_LINES - 1));
        let file = FileLines::new(full.as_bytes(), b'\n', false);
        assert_eq!((file.len(), file.start(MILESTONE_LINES)), (MILESTONE_LINES, full.len()));
        for (text, count) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
            assert_eq!(FileLines::new(text.as_bytes(), b'\n', false).len(), count, "{text:?}");
        }
        for ended in ["", "\r\n"] {
            let lines: Vec<String> = (0..200).map(|number| "x".repeat(number % 7)).collect();
            let text = lines.join("\r\n") + ended;
            let file = FileLines::new(text.as_bytes(), b'\n', true);
            assert_eq!(file.len(), 200);
            assert!(file.lines().eq(lines.iter().map(String::as_bytes)));
            for (at, line) in lines.iter().enumerate() {
                assert_eq!(file.line(at), line.as_bytes());
                assert_eq!(&text[file.ranges(at, 1)[0].clone()], line);
            }
            assert_eq!(file.start(200), text.len());
        }
    }
}
