//! Properties of a text, found in one pass over its bytes, in chunks of any size.

mod non_ascii_runs;

use self::non_ascii_runs::NonAsciiRuns;
use crate::endings::Endings;

/// Properties of a text. Feed every chunk, then call [`TextProperties::finish`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TextProperties {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of `\n`, with or without `\r` before it.
    pub line_feeds: u64,
    /// Number of `\r\n`.
    pub crlf: u64,
    /// Number of `\r` without `\n` after it.
    pub lone_cr: u64,
    /// Number of NUL bytes.
    pub nuls: u64,
    /// Number of control characters of one byte that are shown as escapes, including NUL.
    pub controls: u64,
    /// Number of bytes that are not part of valid UTF-8.
    pub invalid_utf8: u64,
    /// Number of non-ASCII bytes, valid or not.
    pub non_ascii: u64,
    /// Number of lines that begin with a tab.
    pub tab_indents: u64,
    /// Number of lines that begin with at least two blanks, the first of which is a space. A single space aligns a
    /// block comment.
    pub space_indents: u64,
    /// Whether the bytes begin with the UTF-8 byte order mark.
    pub utf8_bom: bool,
    runs: NonAsciiRuns,
    line_start: LineStart,
    last: Option<u8>,
    head: Vec<u8>,
    unfinished: Vec<u8>,
}

/// The part of a line's beginning that the chunks so far end with.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LineStart {
    #[default]
    Empty,
    OneSpace,
    /// The beginning is known.
    Complete,
}

/// Text has hardly any NULs. With more than one in this many bytes, it is binary.
const BYTES_PER_NUL_IN_TEXT: u64 = 512;

/// Text has few other control characters. A coloured log has some.
const BYTES_PER_CONTROL_IN_TEXT: u64 = 8;

impl TextProperties {
    /// The properties of `bytes`.
    pub fn of(bytes: &[u8]) -> TextProperties {
        let mut properties = TextProperties::default();
        properties.feed(bytes);
        properties.finish();
        properties
    }

    /// Adds the next chunk.
    pub fn feed(&mut self, chunk: &[u8]) {
        let Some(&last) = chunk.last() else { return };
        self.record_head(chunk);
        self.bytes += chunk.len() as u64;
        self.record_lines(chunk);
        self.record_utf8(chunk);
        self.nuls += memchr::memchr_iter(0, chunk).count() as u64;
        self.controls += count(chunk, is_shown_escaped);
        self.last = Some(last);
    }

    /// Ends the input.
    pub fn finish(&mut self) {
        self.invalid_utf8 += self.unfinished.len() as u64;
        self.runs.invalid(&self.unfinished);
        self.runs.close();
        self.unfinished.clear();
        if self.last == Some(b'\r') {
            self.lone_cr += 1;
        }
    }

    /// The last byte of a line ending: `\r` if there is no `\n` but a `\r`, otherwise `\n`.
    pub fn terminator(&self) -> u8 {
        if self.line_feeds == 0 && self.lone_cr > 0 { b'\r' } else { b'\n' }
    }

    /// The line endings.
    pub fn endings(&self) -> Endings {
        match (self.line_feeds, self.crlf) {
            (0, _) if self.lone_cr > 0 => Endings::Cr,
            (0, _) => Endings::None,
            (_, 0) => Endings::Lf,
            (lf, crlf) if lf == crlf => Endings::CrLf,
            _ => Endings::Mixed,
        }
    }

    /// Whether the last line is terminated. True for an empty text.
    pub fn ends_with_newline(&self) -> bool {
        self.last.is_none_or(|last| last == self.terminator())
    }

    /// The number of lines, including a last one without a line ending.
    pub fn lines(&self) -> u64 {
        let ended = if self.terminator() == b'\r' { self.lone_cr } else { self.line_feeds };
        ended + u64::from(!self.ends_with_newline())
    }

    /// Whether this is certainly UTF-8 with some invalid bytes: there are many valid characters for each
    /// invalid byte, or some of three or four bytes, which hardly ever occur by chance.
    pub(crate) fn is_damaged_utf8(&self) -> bool {
        self.invalid_utf8 * 10 <= self.non_ascii || self.runs.long_chars >= 2 * self.invalid_utf8
    }

    /// Whether this is more likely UTF-8 with some invalid bytes than text in a single-byte encoding: at
    /// least half of the runs of non-ASCII bytes are valid UTF-8.
    pub(crate) fn may_be_damaged_utf8(&self) -> bool {
        self.runs.whole >= self.runs.broken.max(1)
    }

    /// Whether a run of non-ASCII bytes is valid UTF-8, and there are at least as many characters of three or
    /// four bytes as invalid bytes.
    pub(crate) fn has_long_chars(&self) -> bool {
        self.runs.whole > 0 && self.runs.long_chars >= self.invalid_utf8
    }

    /// Whether this should not be shown as text, except for UTF-16. Text may contain a few NULs.
    pub fn looks_binary(&self) -> bool {
        self.nuls > self.bytes / BYTES_PER_NUL_IN_TEXT + 2
            || self.controls > self.bytes / BYTES_PER_CONTROL_IN_TEXT + 16
    }

    fn record_head(&mut self, chunk: &[u8]) {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        if self.head.len() < BOM.len() {
            let missing = BOM.len() - self.head.len();
            self.head.extend(chunk.iter().take(missing));
            self.utf8_bom = self.head == BOM;
        }
    }

    fn record_lines(&mut self, chunk: &[u8]) {
        if self.last == Some(b'\r') {
            if chunk.first() == Some(&b'\n') {
                self.crlf += 1;
            } else {
                self.lone_cr += 1;
            }
        }
        self.record_indent(chunk);
        for at in memchr::memchr_iter(b'\n', chunk) {
            self.line_feeds += 1;
            self.line_start = LineStart::Empty;
            self.record_indent(&chunk[at + 1..]);
        }
        for at in memchr::memchr_iter(b'\r', chunk) {
            match chunk.get(at + 1) {
                Some(b'\n') => self.crlf += 1,
                Some(_) => self.lone_cr += 1,
                // The next chunk, or `finish`, decides.
                None => {}
            }
        }
    }

    /// Counts the indentation of the line that continues with `rest`.
    fn record_indent(&mut self, rest: &[u8]) {
        let Some(&first) = rest.first() else { return };
        let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        match (self.line_start, first) {
            (LineStart::Empty, b'\t') => self.tab_indents += 1,
            (LineStart::Empty, b' ') if rest.len() == 1 => {
                self.line_start = LineStart::OneSpace;
                return;
            }
            (LineStart::Empty, b' ') => self.space_indents += u64::from(is_blank(rest.get(1))),
            (LineStart::OneSpace, _) => self.space_indents += u64::from(is_blank(Some(&first))),
            (LineStart::Empty | LineStart::Complete, _) => {}
        }
        self.line_start = LineStart::Complete;
    }

    fn record_utf8(&mut self, chunk: &[u8]) {
        let joined;
        let bytes = if self.unfinished.is_empty() {
            chunk
        } else {
            joined = [&self.unfinished, chunk].concat();
            self.unfinished.clear();
            &joined
        };
        self.non_ascii += count(chunk, |byte| !byte.is_ascii());
        if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
            self.runs.valid(text);
            return;
        }
        let mut seen = 0;
        for part in bytes.utf8_chunks() {
            seen += part.valid().len() + part.invalid().len();
            self.runs.valid(part.valid());
            let cut_off_by_the_chunk = seen == bytes.len()
                && std::str::from_utf8(part.invalid()).is_err_and(|e| e.error_len().is_none());
            if cut_off_by_the_chunk {
                self.unfinished = part.invalid().to_vec();
            } else {
                self.invalid_utf8 += part.invalid().len() as u64;
                self.runs.invalid(part.invalid());
            }
        }
    }
}

/// Counts bytes in blocks whose count fits a byte, so that compilers vectorize the loop.
fn count(bytes: &[u8], is_such: impl Fn(u8) -> bool) -> u64 {
    let in_block = |block: &[u8]| block.iter().map(|&byte| u8::from(is_such(byte))).sum::<u8>();
    bytes.chunks(255).map(|block| u64::from(in_block(block))).sum()
}

/// Control characters except tab and line endings. A lone `\r` is counted separately.
fn is_shown_escaped(byte: u8) -> bool {
    byte == 0x7f || byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_ends_are_counted_as_grep_does() {
        let properties = TextProperties::of(b"a\r\nb\nc\x0cd\xe2\x80\xa8e");
        assert_eq!((properties.lines(), properties.endings()), (3, Endings::Mixed));
        assert!(!properties.ends_with_newline());
        assert_eq!(TextProperties::of(b"a\rb\rc").lines(), 3);
        assert_eq!(TextProperties::of(b"a\rb\n").lines(), 1);
        assert_eq!(TextProperties::of(b"").lines(), 0);
        assert_eq!(TextProperties::of(b"\n").lines(), 1);
    }

    #[test]
    fn a_few_nuls_are_text_and_many_are_binary() {
        assert!(!TextProperties::of(b"hello \0 there").looks_binary());
        assert!(TextProperties::of(b"\x7fELF\0\0\0\0\0\0\0\0").looks_binary());
    }

    #[test]
    fn indented_lines_are_counted() {
        let properties = TextProperties::of(b"\ta\n  b\n \tc\n * d\n\n e\nf");
        assert_eq!((properties.tab_indents, properties.space_indents), (1, 2));
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_chunks(
            bytes in proptest::collection::vec(prop_oneof![
                Just(b'\r'), Just(b'\n'), Just(b'\t'), Just(b' '), Just(0xc3), Just(0xa9), Just(0xef), Just(0xbb), Just(0xbf), any::<u8>(),
            ], 0..60),
            size in 1usize..9,
        ) {
            let mut chunked = TextProperties::default();
            for chunk in bytes.chunks(size) {
                chunked.feed(chunk);
            }
            chunked.finish();
            prop_assert_eq!(chunked, TextProperties::of(&bytes));
        }
    }
}
