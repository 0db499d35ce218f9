//! The lines of a patch, without what models put around one.

use super::names;

/// A place in the text of a patch, from which lines are taken. Copying it is how to look ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    rest: &'a str,
    number: usize,
    /// The patch itself was written with CRLF: that is not of its lines.
    crlf: bool,
    /// Blanks in front of every line, which are not of it either.
    indent: usize,
}

/// A line of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchLine<'a> {
    /// From 1.
    pub(super) number: usize,
    /// Without its end.
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Source<'a> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Source { rest: text, number: 1, crlf: false, indent: common_indent(text) };
        let mut lines = source;
        let (mut crlf, mut heredoc) = (false, None);
        while let Some(line) = lines.next_line() {
            if is_structural(line.text) {
                crlf = line.text.ends_with('\r');
                break;
            }
            heredoc = heredoc_word(line.text).or(heredoc);
        }
        let source = Source { crlf, ..source };
        match heredoc {
            Some(word) => source.up_to_line(word, lines),
            None => source,
        }
    }

    /// Whether the text is of the `*** Begin Patch` form: that is what its first header says.
    pub(super) fn is_envelope(mut self) -> bool {
        while let Some(line) = self.next_line() {
            if is_structural(line.text) {
                return line.text.trim_start().starts_with("*** ");
            }
        }
        false
    }

    /// Takes the next line.
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

    /// The next line, which stays.
    pub(super) fn peek(mut self) -> Option<PatchLine<'a>> {
        self.next_line()
    }

    /// The number of the next line.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The same source, ended before the first line that is `word`; `lines` stands behind the first
    /// header.
    fn up_to_line(self, word: &str, mut lines: Source<'a>) -> Source<'a> {
        let mut before = lines.rest.len();
        while let Some(line) = lines.next_line() {
            if line.text.trim() == word {
                return Source { rest: &self.rest[..self.rest.len() - before], ..self };
            }
            before = lines.rest.len();
        }
        self
    }
}

/// Whether a line is one that only patches have.
fn is_structural(line: &str) -> bool {
    let line = line.trim_end_matches('\r');
    let starts = ["diff --git ", "--- ", "+++ ", "@@ "];
    line == "@@"
        || starts.iter().any(|start| line.starts_with(start))
        || line.trim() == super::envelope::BEGIN
        || super::envelope::file_header(line).is_some()
}

/// How many blanks stand in front of every line of a `*** Begin Patch` that is indented as a whole.
fn common_indent(text: &str) -> usize {
    let mut lines = text.lines().skip_while(|line| line.trim() != super::envelope::BEGIN);
    let blanks = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let Some(indent) = lines.next().map(blanks) else { return 0 };
    let all = |line: &str| line.trim().is_empty() || blanks(line) >= indent;
    // A patch whose hunks have no sign in that column either is not indented, only its first line is.
    let is_marker = |line: &str| blanks(line) == indent && line.trim_start().starts_with("*** ");
    if indent > 0 && lines.clone().all(all) && lines.any(is_marker) { indent } else { 0 }
}

/// The word that ends a heredoc which this line of a shell begins.
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
    fn the_word_of_a_heredoc_is_found() {
        assert_eq!(heredoc_word("apply_patch <<'EOF'"), Some("EOF"));
        assert_eq!(heredoc_word("cat <<-\"END\" | patch -p1"), Some("END"));
        assert_eq!(heredoc_word("x << 1; y"), Some("1"));
        assert_eq!(heredoc_word("a <b> c"), None);
    }

    #[test]
    fn a_carriage_return_is_of_the_patch_only_if_its_headers_have_one() {
        let lines = |text| {
            let mut source = Source::new(text);
            std::iter::from_fn(move || source.next_line().map(|line| line.text)).last()
        };
        assert_eq!(lines("--- a\r\n+++ b\r\n@@ -1 +1 @@\r\n-x\r\n"), Some("-x"));
        assert_eq!(lines("--- a\n+++ b\n@@ -1 +1 @@\n-x\r\n"), Some("-x\r"));
    }
}
