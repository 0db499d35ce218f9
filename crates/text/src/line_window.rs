//! Splits text into lines, and extracts a window of lines from a text in chunks, in constant memory.

use crate::truncate::left_out;
use crate::visible::visible;

/// One line as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1. Negative if it is counted from the end.
    pub number: i64,
    /// Its text, made visible, without its line ending.
    pub text: String,
    /// Number of characters omitted at its end.
    pub left_out: u64,
}

impl Line {
    /// The line as shown in replies: its number in six columns, a tab, its text, and a note about omitted
    /// characters.
    pub fn render(&self) -> String {
        let mut shown = String::with_capacity(self.text.len() + 16);
        self.render_to(&mut shown);
        shown
    }

    /// Appends the line to `shown`, formatted as by [`Line::render`].
    pub fn render_to(&self, shown: &mut String) {
        let mut digits = itoa::Buffer::new();
        let number = digits.format(self.number);
        shown.push_str(&"      "[number.len().min(6)..]);
        shown.push_str(number);
        shown.push('\t');
        shown.push_str(&self.text);
        if self.left_out > 0 {
            shown.push_str(&left_out(self.left_out));
        }
        shown.push('\n');
    }

    /// The length of the rendered line, in characters.
    fn shown_chars(&self) -> usize {
        let digits =
            self.number.checked_abs().and_then(i64::checked_ilog10).unwrap_or(0) as usize + 1;
        let number = (digits + usize::from(self.number < 0)).max(6);
        let missing = if self.left_out > 0 { left_out(self.left_out).chars().count() } else { 0 };
        number + 1 + self.text.chars().count() + missing + 1
    }
}

/// The lines of a text without their line endings. A `\r` before `\n` belongs to the line ending.
pub fn split_lines(text: &[u8], terminator: u8) -> Vec<&[u8]> {
    each_line(text, terminator).collect()
}

/// Iterates over the lines of a text, as [`split_lines`] returns them, for a text whose line list would take
/// more memory than the text.
pub fn each_line(text: &[u8], terminator: u8) -> impl Iterator<Item = &[u8]> + Clone {
    let text = text.strip_suffix(&[terminator]).unwrap_or(text);
    text.split(move |&byte| byte == terminator)
        .map(move |line| line.strip_suffix(b"\r").filter(|_| terminator == b'\n').unwrap_or(line))
}

/// Counts the lines of a text in chunks, at memory speed.
#[derive(Debug, Clone, Copy)]
pub struct LineCount {
    terminator: u8,
    ended: u64,
    in_line: bool,
}

impl LineCount {
    /// Counts lines that end with `terminator`.
    pub fn new(terminator: u8) -> Self {
        LineCount { terminator, ended: 0, in_line: false }
    }

    /// Adds the next chunk.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.ended += memchr::memchr_iter(self.terminator, chunk).count() as u64;
        self.in_line = chunk.last().map_or(self.in_line, |&last| last != self.terminator);
    }

    /// The number of lines, including a last one without a line ending.
    pub fn lines(self) -> u64 {
        self.ended + u64::from(self.in_line)
    }
}

/// The lines to show, and their limits.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The last byte of a line ending.
    pub terminator: u8,
    /// The first line, from 1.
    pub first: u64,
    /// Maximum number of lines.
    pub limit: u64,
    /// Maximum number of characters of a line.
    pub line_chars: usize,
    /// Maximum number of characters in total, as rendered. The window closes before the line that would
    /// exceed it.
    pub total_chars: usize,
}

/// Collects a [`Window`] of a text in chunks. It holds only the part of each line that will be shown, so that
/// a line of gigabytes costs as much as a short one.
#[derive(Debug)]
pub struct LineWindow {
    window: Window,
    number: u64,
    held: Vec<u8>,
    skipped_chars: u64,
    in_line: bool,
    shown_chars: usize,
    lines: Vec<Line>,
    full: bool,
}

impl LineWindow {
    /// An empty window.
    pub fn new(window: Window) -> Self {
        LineWindow {
            window,
            number: 1,
            held: Vec::new(),
            skipped_chars: 0,
            in_line: false,
            shown_chars: 0,
            lines: Vec::new(),
            full: window.limit == 0,
        }
    }

    /// Adds the next chunk. Returns whether more chunks are needed.
    pub fn feed(&mut self, chunk: &[u8]) -> bool {
        let mut rest = self.skip_lines(chunk);
        while !self.full && !rest.is_empty() {
            match memchr::memchr(self.window.terminator, rest) {
                Some(at) => {
                    self.hold(&rest[..at]);
                    self.end_line();
                    rest = &rest[at + 1..];
                }
                None => {
                    self.hold(rest);
                    self.in_line = true;
                    break;
                }
            }
        }
        !self.full
    }

    /// The lines of the window, including a last line without a line ending.
    pub fn finish(mut self) -> Vec<Line> {
        self.end_last_line();
        self.lines
    }

    /// The number of lines of the text, if it was fed completely and all lines fit.
    pub fn total_lines(&mut self) -> Option<u64> {
        self.end_last_line();
        (!self.full).then_some(self.number - 1)
    }

    fn end_last_line(&mut self) {
        if self.in_line && !self.full {
            self.end_line();
        }
    }

    /// Counts lines before the window, if all line ends in the chunk are before it. That is far faster than
    /// examining each line. Returns the rest of the chunk.
    fn skip_lines<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        if self.is_in_window() || self.full {
            return chunk;
        }
        let mut skipped = LineCount::new(self.window.terminator);
        skipped.feed(chunk);
        if self.number + skipped.ended >= self.window.first {
            return chunk;
        }
        self.number += skipped.ended;
        self.in_line = skipped.in_line || (chunk.is_empty() && self.in_line);
        &[]
    }

    fn is_in_window(&self) -> bool {
        self.window.first <= self.number
    }

    fn hold(&mut self, part: &[u8]) {
        if !self.is_in_window() {
            return;
        }
        // Room for the longest characters, and for the `\r` of the line ending.
        let room = (self.window.line_chars * 4 + 1).saturating_sub(self.held.len());
        let (kept, skipped) = part.split_at(room.min(part.len()));
        self.held.extend_from_slice(kept);
        self.skipped_chars += count_chars(skipped);
    }

    fn end_line(&mut self) {
        if self.is_in_window() {
            let line = self.take_line();
            let chars = line.shown_chars();
            if self.shown_chars + chars > self.window.total_chars && !self.lines.is_empty() {
                self.full = true;
                return;
            }
            self.shown_chars += chars;
            self.lines.push(line);
            self.full = self.lines.len() as u64 >= self.window.limit;
        }
        self.number += 1;
        self.in_line = false;
    }

    fn take_line(&mut self) -> Line {
        let mut bytes = std::mem::take(&mut self.held);
        let mut left_out = std::mem::take(&mut self.skipped_chars);
        if left_out > 0 {
            left_out += drop_unfinished_char(&mut bytes);
        } else if self.window.terminator == b'\n' && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        if self.number == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        let mut text = visible(&bytes);
        // A line has no more characters than bytes.
        let may_be_long = text.len() > self.window.line_chars;
        let cut = may_be_long.then(|| text.char_indices().nth(self.window.line_chars)).flatten();
        if let Some((cut, _)) = cut {
            left_out += text[cut..].chars().count() as u64;
            text.truncate(cut);
        }
        // The next line needs as much room.
        bytes.clear();
        self.held = bytes;
        Line { number: self.number.cast_signed(), text, left_out }
    }
}

/// Removes an incomplete character from the end. Returns the number of removed characters, 0 or 1.
fn drop_unfinished_char(bytes: &mut Vec<u8>) -> u64 {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let unfinished = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    if unfinished {
        bytes.truncate(bytes.len() - tail.len());
    }
    u64::from(unfinished)
}

/// The number of characters in bytes that are mostly UTF-8: all bytes except continuation bytes.
fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Window =
        Window { terminator: b'\n', first: 1, limit: 9, line_chars: 100, total_chars: 10_000 };

    fn window(text: &[u8], first: u64, limit: u64, line_chars: usize, chunk: usize) -> Vec<Line> {
        let mut window = LineWindow::new(Window { first, limit, line_chars, ..WINDOW });
        for chunk in text.chunks(chunk) {
            if !window.feed(chunk) {
                break;
            }
        }
        window.finish()
    }

    #[test]
    fn a_long_line_is_cut_between_characters_and_counts_the_rest() {
        let line = &window("äöüß\nx".as_bytes(), 1, 2, 2, 3)[0];
        assert_eq!((line.text.as_str(), line.left_out), ("äö", 2));
        let line = &window("ä".repeat(5000).as_bytes(), 1, 2, 2, 7)[0];
        assert_eq!((line.text.as_str(), line.left_out), ("ää", 4998));
    }

    #[test]
    fn the_window_closes_before_the_line_that_would_exceed_it() {
        let mut window = LineWindow::new(Window { total_chars: 19, ..WINDOW });
        assert!(!window.feed(b"ab\ncd\nef\n"));
        assert_eq!(window.finish().len(), 1);
    }

    proptest! {
        #[test]
        fn lines_equal_those_of_the_standard_library(
            text in "[a-z\\n\u{e4}]{0,80}", first in 1u64..6, limit in 1u64..6, chunk in 1usize..9,
        ) {
            let all = window(text.as_bytes(), first, limit, 1000, chunk);
            prop_assert!(all.iter().all(|line| line.shown_chars() == line.render().chars().count()));
            let expected: Vec<(u64, String)> = (1..).zip(text.lines().map(String::from))
                .skip(first as usize - 1).take(limit as usize).collect();
            let got: Vec<(u64, String)> = window(text.as_bytes(), first, limit, 1000, chunk)
                .into_iter().map(|line| (line.number.cast_unsigned(), line.text)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
