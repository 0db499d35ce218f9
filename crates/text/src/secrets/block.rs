//! Private keys in PEM and PuTTY format: a begin line, lines of base64, an end line.
//!
//! The frame is not secret and occurs in source code. Only text that looks like a key is masked, so that a
//! frame without a key hides nothing.

use std::ops::Range;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const PRIVATE: &str = "PRIVATE KEY";
const DASHES: &str = "-----";

/// Precedes the private part of a PuTTY key. The number of its lines follows.
const PUTTY: &str = "Private-Lines: ";

/// Minimum length of the lines of a key, except for its last ones.
const MIN_KEY_LINE: usize = 40;

/// Limit of short lines at the end of a key: the last part and a checksum.
const MAX_SHORT_LINES: u8 = 2;

/// Limit of header lines between the frame and the key, such as the encryption method.
const MAX_HEADER_LINES: u8 = 6;

/// The position of the masker relative to a key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum KeyBlock {
    #[default]
    Outside,
    /// A begin line was seen this many lines ago.
    Begun(u8),
    /// In the key, after this many short lines.
    Key(u8),
}

impl KeyBlock {
    /// The part of the next line that belongs to a key.
    pub(super) fn part_of_key(&mut self, line: &str) -> Option<Range<usize>> {
        if let Some(inside) = begins(line) {
            *self = KeyBlock::Begun(0);
            return in_one_line(line, inside, self);
        }
        if line.contains(END) {
            *self = KeyBlock::Outside;
            return None;
        }
        let base64 = trailing_base64(line);
        let (next, is_key) = match *self {
            KeyBlock::Outside => return None,
            _ if base64.len() >= MIN_KEY_LINE => (KeyBlock::Key(0), true),
            KeyBlock::Begun(lines) if lines < MAX_HEADER_LINES => {
                (KeyBlock::Begun(lines + 1), false)
            }
            KeyBlock::Key(short) if short < MAX_SHORT_LINES && !base64.is_empty() => {
                (KeyBlock::Key(short + 1), true)
            }
            _ => (KeyBlock::Outside, false),
        };
        *self = next;
        is_key.then_some(base64)
    }
}

/// The end of the frame, if this line begins a key.
fn begins(line: &str) -> Option<usize> {
    if line.contains(PUTTY) {
        return Some(line.len());
    }
    let begin = line.find(BEGIN)?;
    let said = &line[begin + BEGIN.len()..];
    let said = &said[..said.find(DASHES)?];
    said.contains(PRIVATE).then_some(begin + BEGIN.len() + said.len() + DASHES.len())
}

/// A key within one line, with escaped line ends.
fn in_one_line(line: &str, from: usize, block: &mut KeyBlock) -> Option<Range<usize>> {
    let end = line[from..].find(END).map(|end| from + end);
    let inside = from..end.unwrap_or(line.len());
    let longest = line[inside.clone()].split(|c: char| !is_base64(c)).map(str::len).max();
    if end.is_some() {
        *block = KeyBlock::Outside;
    }
    (longest.unwrap_or(0) >= MIN_KEY_LINE).then_some(inside)
}

/// The base64 characters at the end of a line. Line numbers and diff signs may precede them.
fn trailing_base64(line: &str) -> Range<usize> {
    let end = without_marks(line).len();
    let before = line[..end].trim_end_matches(is_base64).len();
    // The sign of a diff line is a base64 character too.
    let sign = usize::from(before == 0 && line.starts_with('+'));
    before + sign..end
}

/// Strips the marks that `cat -A` puts at the end of a line.
fn without_marks(line: &str) -> &str {
    let line = line.trim_end();
    let line = line.strip_suffix('$').unwrap_or(line);
    line.strip_suffix("^M").unwrap_or(line)
}

fn is_base64(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=')
}
