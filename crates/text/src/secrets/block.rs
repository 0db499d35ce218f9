//! Private keys as files have them: a line that says so, lines of base64, a line that ends it.
//!
//! The frame is no secret, and stands in many a source. Only what looks like the key behind it is masked, so
//! that a frame without one hides nothing.

use std::ops::Range;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const PRIVATE: &str = "PRIVATE KEY";
const DASHES: &str = "-----";

/// Before the private part of a key that PuTTY wrote; the number of its lines follows.
const PUTTY: &str = "Private-Lines: ";

/// Lines of a key are at least so long, but for its last ones.
const LONG: usize = 40;

/// Short lines at the end of a key: the rest of it, and a checksum.
const MOST_SHORT: u8 = 2;

/// Lines between the frame and the key, such as how it is encrypted.
const MOST_HEADERS: u8 = 6;

/// Where in a key a text is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Block {
    #[default]
    Outside,
    /// It was said that a key follows, so many lines ago.
    Begun(u8),
    /// In the key; so many of its lines were short.
    Key(u8),
}

impl Block {
    /// The part of the next line that belongs to a key.
    pub(super) fn part_of_key(&mut self, line: &str) -> Option<Range<usize>> {
        if let Some(inside) = begins(line) {
            *self = Block::Begun(0);
            return in_one_line(line, inside, self);
        }
        if line.contains(END) {
            *self = Block::Outside;
            return None;
        }
        let letters = last_letters(line);
        let (next, is_key) = match *self {
            Block::Outside => return None,
            _ if letters.len() >= LONG => (Block::Key(0), true),
            Block::Begun(lines) if lines < MOST_HEADERS => (Block::Begun(lines + 1), false),
            Block::Key(short) if short < MOST_SHORT && !letters.is_empty() => {
                (Block::Key(short + 1), true)
            }
            _ => (Block::Outside, false),
        };
        *self = next;
        is_key.then_some(letters)
    }
}

/// Where the line that begins a key ends, if this is one.
fn begins(line: &str) -> Option<usize> {
    if line.contains(PUTTY) {
        return Some(line.len());
    }
    let begin = line.find(BEGIN)?;
    let said = &line[begin + BEGIN.len()..];
    let said = &said[..said.find(DASHES)?];
    said.contains(PRIVATE).then_some(begin + BEGIN.len() + said.len() + DASHES.len())
}

/// A whole key in one line, its ends written out.
fn in_one_line(line: &str, from: usize, block: &mut Block) -> Option<Range<usize>> {
    let end = line[from..].find(END).map(|end| from + end);
    let inside = from..end.unwrap_or(line.len());
    let longest = line[inside.clone()].split(|c: char| !is_base64(c)).map(str::len).max();
    if end.is_some() {
        *block = Block::Outside;
    }
    (longest.unwrap_or(0) >= LONG).then_some(inside)
}

/// The letters of base64 that a line ends with. Numbers and signs of a line may stand before them.
fn last_letters(line: &str) -> Range<usize> {
    let end = without_marks(line).len();
    let before = line[..end].trim_end_matches(is_base64).len();
    // A sign of a diff is a letter of base64 too.
    let sign = usize::from(before == 0 && line.starts_with('+'));
    before + sign..end
}

/// A line without the marks that `cat -A` puts at its end.
fn without_marks(line: &str) -> &str {
    let line = line.trim_end();
    let line = line.strip_suffix('$').unwrap_or(line);
    line.strip_suffix("^M").unwrap_or(line)
}

fn is_base64(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=')
}
