//! The lines of a patch, without the wrapping that models add.

use super::names;

/// A position in the text of a patch. Copies are used to look ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnfencedLines<'a> {
    rest: &'a str,
    number: usize,
    /// The patch uses CRLF, so a `\r` at a line end is not part of the line.
    crlf: bool,
    /// Number of spaces before every line, which are not part of it either.
    indent: usize,
}

/// A line of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchLine<'a> {
    /// From 1.
    pub(super) number: usize,
    /// Without its line ending.
    pub(super) text: &'a str,
}

impl<'a> UnfencedLines<'a> {
    pub(super) fn new(text: &'a str) -> UnfencedLines<'a> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source =
            UnfencedLines { rest: text, number: 1, crlf: false, indent: common_indent(text) };
        let mut lines = source;
        let (mut crlf, mut heredoc) = (false, None);
        while let Some(line) = lines.next_line() {
            if is_structural(line.text) {
                crlf = line.text.ends_with('\r');
                break;
            }
            heredoc = heredoc_word(line.text).or(heredoc);
        }
        let source = UnfencedLines { crlf, ..source };
        match heredoc {
            Some(word) => source.up_to_line(word, lines),
            None => source,
        }
    }

    /// Whether the text has the `*** Begin Patch` format, by its first header.
    pub(super) fn is_envelope(mut self) -> bool {
        while let Some(line) = self.next_line() {
            if is_structural(line.text) {
                return line.text.trim_start().starts_with("*** ");
            }
        }
        false
    }

    /// Consumes the next line.
    pub(super) fn next_line(&mut self) -> Option<PatchLine<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.rest.as_bytes());
        let text = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = end.map_or("", |end| &self.rest[end + 1..]);
        let number = self.number;
        self.number += 1;
        let text = text.strip_suffix('\r').filter(|_| self.crlf).unwrap_or(text);
        let text = text.get(self.indent..).unwrap_or_default();
        Some(PatchLine { number, text })
    }

    /// The next line, without consuming it.
    pub(super) fn peek(mut self) -> Option<PatchLine<'a>> {
        self.next_line()
    }

    /// The number of the next line.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Ends the source before the first line that is `word`. `lines` is the position after the first header.
    fn up_to_line(self, word: &str, mut lines: UnfencedLines<'a>) -> UnfencedLines<'a> {
        let mut before = lines.rest.len();
        while let Some(line) = lines.next_line() {
            if line.text.trim() == word {
                return UnfencedLines { rest: &self.rest[..self.rest.len() - before], ..self };
            }
            before = lines.rest.len();
        }
        self
    }
}

/// Whether a line occurs only in patches.
fn is_structural(line: &str) -> bool {
    let line = line.trim_end_matches('\r');
    let starts = ["diff --git ", "--- ", "+++ ", "@@ "];
    line == "@@"
        || starts.iter().any(|start| line.starts_with(start))
        || line.trim() == super::envelope::BEGIN
        || super::envelope::file_header(line).is_some()
}

/// The number of spaces before every line of a `*** Begin Patch` that is indented as a whole.
fn common_indent(text: &str) -> usize {
    let mut lines = text.lines().skip_while(|line| line.trim() != super::envelope::BEGIN);
    let blanks = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let Some(indent) = lines.next().map(blanks) else { return 0 };
    let all = |line: &str| line.trim().is_empty() || blanks(line) >= indent;
    // If no other marker is in that column, only the first line is indented.
    let is_marker = |line: &str| blanks(line) == indent && line.trim_start().starts_with("*** ");
    if indent > 0 && lines.clone().all(all) && lines.any(is_marker) { indent } else { 0 }
}

/// The delimiter of a heredoc that begins in this line.
fn heredoc_word(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("<<")?;
    let after = after.trim_start_matches(['-', '~', ' ']);
    let word = after.split([' ', '|', ';', '>', '&', '\r']).next()?;
    let word = word.trim_matches(names::QUOTES);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!word.is_empty() && word.chars().all(plain)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_of_a_heredoc_is_found() {
        assert_eq!(heredoc_word("apply_patch <<'EOF'"), Some("EOF"));
        assert_eq!(heredoc_word("cat <<-\"END\" | patch -p1"), Some("END"));
        assert_eq!(heredoc_word("x << 1; y"), Some("1"));
        assert_eq!(heredoc_word("a <b> c"), None);
    }

    #[test]
    fn a_carriage_return_is_stripped_only_if_the_headers_have_one() {
        let lines = |text| {
            let mut source = UnfencedLines::new(text);
            std::iter::from_fn(move || source.next_line().map(|line| line.text)).last()
        };
        assert_eq!(lines("--- a\r\n+++ b\r\n@@ -1 +1 @@\r\n-x\r\n"), Some("-x"));
        assert_eq!(lines("--- a\n+++ b\n@@ -1 +1 @@\n-x\r\n"), Some("-x\r"));
    }
}
