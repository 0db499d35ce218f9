//! Tokens with a distinctive prefix, followed by enough characters of the right kind.

use std::ops::Range;

use super::table::{Letters, SHAPES, Shape};

/// A secret in a line.
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) name: &'static str,
}

/// The range of table rows for each first byte of a prefix.
const BY_FIRST: [(usize, usize); 256] = {
    let mut ranges = [(0, 0); 256];
    let mut at = 0;
    while at < SHAPES.len() {
        let first = SHAPES[at].prefix.as_bytes()[0] as usize;
        if ranges[first].1 == 0 {
            ranges[first].0 = at;
        }
        at += 1;
        ranges[first].1 = at;
    }
    ranges
};

/// The beginning of a JSON object in base64. A JWT has two of them.
const JWT: &str = "eyJ";

/// Minimum length of each part of a JWT.
const LEAST_JWT: usize = 8;

/// All kinds of characters occur within this many bytes of a token.
const LOOKED_AT: usize = 64;

/// Limit of the length of user name and password.
const LONGEST_LOGIN: usize = 256;

/// The token that begins here. `begins_at` must hold.
pub(super) fn token_at(line: &[u8], at: usize) -> Option<Found> {
    let (from, to) = BY_FIRST[usize::from(line[at])];
    let token = || SHAPES[from..to].iter().find_map(|shape| shaped_at(shape, line, at));
    jwt_at(line, at).or_else(token)
}

/// Whether these bytes may be the beginning of a token.
pub(super) fn may_begin_token(rest: &[u8]) -> bool {
    let fits = |prefix: &[u8]| rest.starts_with(prefix) || prefix.starts_with(rest);
    let Some(&first) = rest.first() else { return false };
    let (from, to) = BY_FIRST[usize::from(first)];
    fits(JWT.as_bytes()) || SHAPES[from..to].iter().any(|shape| fits(shape.prefix.as_bytes()))
}

/// Whether a token may begin here: the byte before it cannot be part of the token.
pub(super) fn begins_at(line: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    match line[before] {
        // The sign of a diff line.
        b'-' => before == 0,
        // An escaped newline or similar.
        b'n' | b't' | b'r' => before > 0 && line[before - 1] == b'\\',
        letter => !is_wide(&letter),
    }
}

/// Whether a token can contain this byte.
pub(super) fn is_part_of_a_token(letter: u8) -> bool {
    is_wide(&letter) || matches!(letter, b'.' | b'/' | b'+' | b'=')
}

fn shaped_at(shape: &Shape, line: &[u8], at: usize) -> Option<Found> {
    let rest = line[at..].strip_prefix(shape.prefix.as_bytes())?;
    let is_letter: fn(&u8) -> bool = match shape.letters {
        Letters::Capital => |letter| letter.is_ascii_uppercase() || letter.is_ascii_digit(),
        Letters::Hex => |letter| letter.is_ascii_digit() || (b'a'..=b'f').contains(letter),
        Letters::Plain => u8::is_ascii_alphanumeric,
        Letters::Wide | Letters::Mixed => is_wide,
        Letters::Dotted => |letter| is_wide(letter) || *letter == b'.',
        Letters::Base64 => |letter| is_wide(letter) || b"+/=".contains(letter),
    };
    let first = &rest[..run(&rest[..rest.len().min(LOOKED_AT)], is_letter)];
    let least = shape.least.min(LOOKED_AT);
    if first.len() < least || (shape.letters == Letters::Mixed && !is_mixed(first)) {
        return None;
    }
    // It is a token. Its end is found now, and these bytes are not examined again.
    let length = run(rest, is_letter);
    let is_exact = matches!(shape.letters, Letters::Capital | Letters::Hex);
    let ends = match is_exact {
        true => length == shape.least && !rest.get(length).is_some_and(is_wide),
        false => length >= shape.least,
    };
    let end = at + shape.prefix.len() + length;
    ends.then_some(Found { range: at..end, name: shape.name })
}

/// Three parts separated by dots. The first two are JSON objects.
fn jwt_at(line: &[u8], at: usize) -> Option<Found> {
    let is_object = |part: &[u8]| part.starts_with(JWT.as_bytes());
    let mut end = at;
    for part in 0..3 {
        if part > 0 {
            if line.get(end) != Some(&b'.') {
                return None;
            }
            end += 1;
        }
        let rest = &line[end..];
        if part < 2 && !is_object(rest) {
            return None;
        }
        let length = run(rest, is_wide);
        if length < LEAST_JWT {
            return None;
        }
        end += length;
    }
    Some(Found { range: at..end, name: "JWT" })
}

/// The password in `://user:password@host`. `at` is the position of `://`.
pub(super) fn password_at(line: &[u8], at: usize) -> Option<Found> {
    let rest = line[at..].strip_prefix(b"://")?;
    let rest = &rest[..rest.len().min(LONGEST_LOGIN)];
    let is_login = |letter: &u8| !letter.is_ascii_whitespace() && !b"/\"'`<>?#".contains(letter);
    let login = &rest[..run(rest, is_login)];
    let host = login.iter().rposition(|&letter| letter == b'@')?;
    let colon = login[..host].iter().position(|&letter| letter == b':')?;
    let password = &login[colon + 1..host];
    let from = at + 3 + colon + 1;
    (password.len() >= 3 && !is_filled_in(password) && host + 1 < login.len())
        .then_some(Found { range: from..from + password.len(), name: "password" })
}

/// Whether a shell or a template would replace this. `%40` is an escaped character, `%s` is not.
fn is_filled_in(password: &[u8]) -> bool {
    let is_escape = |at: usize| {
        let digits = password.get(at + 1..at + 3).unwrap_or_default();
        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
    };
    password.iter().enumerate().any(|(at, letter)| match letter {
        b'$' | b'{' | b'}' | b'*' => true,
        b'%' => !is_escape(at),
        _ => false,
    })
}

pub(super) fn is_wide(letter: &u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_')
}

fn is_mixed(letters: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| letters.iter().any(is);
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

/// The number of leading bytes that satisfy `is`.
pub(super) fn run(letters: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    letters.iter().position(|letter| !is(letter)).unwrap_or(letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_with_the_same_first_byte_are_adjacent() {
        let covered: usize = BY_FIRST.iter().map(|(from, to)| to - from).sum();
        assert_eq!(covered, SHAPES.len());
    }
}
