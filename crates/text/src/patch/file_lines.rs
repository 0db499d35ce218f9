//! A file as its lines, each with what ends it.

use std::ops::Range;

/// A file as its lines.
#[derive(Debug, Clone)]
pub(super) struct FileLines<'a> {
    pub(super) text: &'a [u8],
    /// Where each line begins, and where the last ends.
    bounds: Vec<usize>,
    pub(super) terminator: u8,
    /// All lines end in `\r\n` and the patch has no `\r`: then a `\r` at a line's end is no letter.
    pub(super) hides_cr: bool,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(text: &'a [u8], terminator: u8, hides_cr: bool) -> FileLines<'a> {
        let mut bounds = vec![0];
        bounds.extend(memchr::memchr_iter(terminator, text).map(|at| at + 1));
        if bounds.last() != Some(&text.len()) {
            bounds.push(text.len());
        }
        FileLines { text, bounds, terminator, hides_cr }
    }

    pub(super) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// A line with its end.
    fn whole(&self, at: usize) -> &'a [u8] {
        &self.text[self.bounds[at]..self.bounds[at + 1]]
    }

    /// A line without its end.
    pub(super) fn line(&self, at: usize) -> &'a [u8] {
        let whole = self.whole(at);
        let line = whole.strip_suffix(&[self.terminator]).unwrap_or(whole);
        line.strip_suffix(b"\r").filter(|_| self.hides_cr).unwrap_or(line)
    }

    /// What ends a line, a `\r` included; nothing, for a last one without an end.
    pub(super) fn ending(&self, at: usize) -> Option<&'a [u8]> {
        let line = self.whole(at).strip_suffix(&[self.terminator])?;
        let cr = usize::from(self.terminator == b'\n' && line.ends_with(b"\r"));
        Some(&self.whole(at)[line.len() - cr..])
    }

    /// Where a line begins, in bytes; behind the last, where the text ends.
    pub(super) fn start(&self, at: usize) -> usize {
        self.bounds[at]
    }

    /// Whether the last line is ended.
    pub(super) fn is_ended(&self) -> bool {
        self.text.last().is_none_or(|last| *last == self.terminator)
    }

    /// Where lines stand in the text, without their ends.
    pub(super) fn ranges(&self, start: usize, count: usize) -> Vec<Range<usize>> {
        let range = |at: usize| self.bounds[at]..self.bounds[at] + self.line(at).len();
        (start..start + count).map(range).collect()
    }

    /// All of them, without their ends.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.len()).map(|at| self.line(at))
    }
}
