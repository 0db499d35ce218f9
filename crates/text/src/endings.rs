//! Line endings of a whole text and at a position.

/// The line endings of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endings {
    /// No line is terminated.
    None,
    /// All lines end with `\n`.
    Lf,
    /// All lines end with `\r\n`.
    CrLf,
    /// There is no `\n`. All lines end with `\r`.
    Cr,
    /// Both `\n` and `\r\n`.
    Mixed,
}

impl Endings {
    /// The line endings of `text`.
    pub fn of(text: &[u8]) -> Endings {
        let has_lf = memchr::memchr(b'\n', text).is_some();
        let mut returns = memchr::memchr_iter(b'\r', text).peekable();
        if returns.peek().is_none() || !has_lf {
            return match (has_lf, returns.peek()) {
                (true, _) => Endings::Lf,
                (false, Some(_)) => Endings::Cr,
                (false, None) => Endings::None,
            };
        }
        let crlf = returns.filter(|at| text.get(at + 1) == Some(&b'\n')).count();
        match crlf {
            0 => Endings::Lf,
            _ if crlf == memchr::memchr_iter(b'\n', text).count() => Endings::CrLf,
            _ => Endings::Mixed,
        }
    }

    /// The last byte of a line ending: `\r` if there is no `\n` but a `\r`, otherwise `\n`.
    pub fn terminator(self) -> u8 {
        if self == Endings::Cr { b'\r' } else { b'\n' }
    }

    /// Converts text with `\n`, as models write it, to these line endings, if they are uniform. Text that
    /// contains a `\r` is returned unchanged.
    pub fn adapt(self, text: &str) -> String {
        match self {
            Endings::CrLf if !text.contains('\r') => text.replace('\n', "\r\n"),
            Endings::Cr if !text.contains('\r') => text.replace('\n', "\r"),
            _ => text.to_owned(),
        }
    }
}

/// Returns the line ending at a position, for positions from left to right. All calls together cost one pass
/// over the text, independent of the length of its lines.
#[derive(Debug)]
pub struct EndingFinder<'a> {
    text: &'a [u8],
    /// The end of the line at the last position, if the line is terminated.
    line_end: Option<usize>,
    has_cr: bool,
    last_newline: Option<usize>,
}

impl<'a> EndingFinder<'a> {
    /// A finder for `text`.
    pub fn new(text: &'a [u8]) -> Self {
        EndingFinder {
            text,
            line_end: Some(0),
            has_cr: memchr::memchr(b'\r', text).is_some(),
            last_newline: memchr::memrchr(b'\n', text),
        }
    }

    /// The ending of the line at `place`, or of the line before if it has none.
    pub fn at(&mut self, place: usize) -> &'static str {
        if self.line_end.is_some_and(|end| end <= place) {
            let rest = self.text.get(place..).unwrap_or_default();
            self.line_end = memchr::memchr(b'\n', rest).map(|at| place + at);
        }
        match self.line_end.or(self.last_newline) {
            Some(at) if at > 0 && self.text[at - 1] == b'\r' => "\r\n",
            Some(_) => "\n",
            None if self.has_cr => "\r",
            None => "\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text_properties::TextProperties;

    proptest! {
        #[test]
        fn text_properties_give_the_same_endings(text in "[a\r\n]{0,9}") {
            let properties = TextProperties::of(text.as_bytes());
            prop_assert_eq!(Endings::of(text.as_bytes()), properties.endings());
            prop_assert_eq!(Endings::of(text.as_bytes()).terminator(), properties.terminator());
        }
    }

    #[test]
    fn each_position_has_the_ending_of_its_line() {
        let text = b"a\r\nb\nc\r\nd";
        let mut finder = EndingFinder::new(text);
        let found: Vec<&str> = [0, 3, 5, 8].map(|place| finder.at(place)).into();
        assert_eq!(found, ["\r\n", "\n", "\r\n", "\r\n"]);
        assert_eq!(EndingFinder::new(b"a\rb").at(0), "\r");
        assert_eq!(EndingFinder::new(b"ab").at(1), "\n");
        assert_eq!(EndingFinder::new(b"\n").at(0), "\n");
    }
}
