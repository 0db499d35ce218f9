//! Classification of file content for searching.

use crate::decoder::{Decoded, Decoder};

/// How the content of a file can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentClass {
    /// UTF-8 with lines that end in `\n`. The bytes are searched directly.
    Plain,
    /// Not UTF-8, but otherwise ordinary. The bytes are searched directly if the pattern is ASCII only.
    NotUtf8,
    /// Text that must be decoded first: UTF-16, lines that end in `\r`, or a NUL in it.
    NeedsDecoding,
    /// Not text, for any pattern.
    Binary,
}

impl ContentClass {
    pub(crate) fn of(bytes: &[u8], decoder: &dyn Decoder) -> ContentClass {
        if !needs_inspection(bytes) {
            return if std::str::from_utf8(bytes).is_ok() {
                ContentClass::Plain
            } else {
                ContentClass::NotUtf8
            };
        }
        match decoder.read(bytes) {
            Decoded::Binary => ContentClass::Binary,
            Decoded::Text(..) => ContentClass::NeedsDecoding,
        }
    }
}

/// Whether the content must be inspected before a search, for any pattern.
pub(crate) fn needs_inspection(bytes: &[u8]) -> bool {
    let no_lines =
        || memchr::memchr(b'\n', bytes).is_none() && memchr::memchr(b'\r', bytes).is_some();
    memchr::memchr(0, bytes).is_some()
        || bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff")
        || no_lines()
}
