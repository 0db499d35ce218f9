//! What kind of text the bytes of a file are, as far as a search must know.

use crate::grep::{Decoded, Decoder};

/// What kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// UTF-8 whose lines end with `\n`: searched as it is.
    Plain,
    /// Not UTF-8, though nothing else is odd: searched as it is for a pattern of ASCII only.
    Foreign,
    /// A text that is not searched by its bytes: UTF-16, lines that end with `\r`, a NUL in it.
    Odd,
    /// No text, whatever is looked for.
    Binary,
}

impl Nature {
    pub(crate) fn of(bytes: &[u8], letters: &dyn Decoder) -> Nature {
        if !is_strange(bytes) {
            return if std::str::from_utf8(bytes).is_ok() {
                Nature::Plain
            } else {
                Nature::Foreign
            };
        }
        match letters.read(bytes) {
            Decoded::Binary => Nature::Binary,
            Decoded::Text(..) => Nature::Odd,
        }
    }
}

/// Whether bytes must be looked at closely before they are searched, whatever is looked for.
pub(crate) fn is_strange(bytes: &[u8]) -> bool {
    let no_lines =
        || memchr::memchr(b'\n', bytes).is_none() && memchr::memchr(b'\r', bytes).is_some();
    memchr::memchr(0, bytes).is_some()
        || bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff")
        || no_lines()
}
