//! Tokens with a distinctive prefix, followed by enough characters of the right kind.

use std::ops::Range;

use super::table::{SHAPES, Shape, TokenChars};

/// A secret in a line.
pub(super) struct SecretMatch {
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
const MIN_JWT_PART_BYTES: usize = 8;

/// All kinds of characters occur within this many bytes of a token.
const PEEKED_BYTES: usize = 64;

/// Limit of the length of user name and password.
const MAX_LOGIN_BYTES: usize = 256;

/// The token that begins here. `begins_at` must hold.
pub(super) fn token_at(line: &[u8], at: usize) -> Option<SecretMatch> {
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
        byte => !is_word_byte(&byte),
    }
}

/// Whether a token can contain this byte.
pub(super) fn is_part_of_a_token(byte: u8) -> bool {
    is_word_byte(&byte) || matches!(byte, b'.' | b'/' | b'+' | b'=')
}

fn shaped_at(shape: &Shape, line: &[u8], at: usize) -> Option<SecretMatch> {
    let rest = line[at..].strip_prefix(shape.prefix.as_bytes())?;
    let is_letter: fn(&u8) -> bool = match shape.chars {
        TokenChars::Capital => |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        TokenChars::Hex => |byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        TokenChars::Plain => u8::is_ascii_alphanumeric,
        TokenChars::Wide | TokenChars::Mixed => is_word_byte,
        TokenChars::Dotted => |byte| is_word_byte(byte) || *byte == b'.',
        TokenChars::Base64 => |byte| is_word_byte(byte) || b"+/=".contains(byte),
    };
    let first = &rest[..prefix_len(&rest[..rest.len().min(PEEKED_BYTES)], is_letter)];
    let least = shape.min_len.min(PEEKED_BYTES);
    if first.len() < least || (shape.chars == TokenChars::Mixed && !is_mixed(first)) {
        return None;
    }
    // It is a token. Its end is found now, and these bytes are not examined again.
    let length = prefix_len(rest, is_letter);
    let is_exact = matches!(shape.chars, TokenChars::Capital | TokenChars::Hex);
    let ends = if is_exact {
        length == shape.min_len && !rest.get(length).is_some_and(is_word_byte)
    } else {
        length >= shape.min_len
    };
    let end = at + shape.prefix.len() + length;
    ends.then_some(SecretMatch { range: at..end, name: shape.name })
}

/// Three parts separated by dots. The first two are JSON objects.
fn jwt_at(line: &[u8], at: usize) -> Option<SecretMatch> {
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
        let length = prefix_len(rest, is_word_byte);
        if length < MIN_JWT_PART_BYTES {
            return None;
        }
        end += length;
    }
    Some(SecretMatch { range: at..end, name: "JWT" })
}

/// The password in `://user:password@host`. `at` is the position of `://`.
pub(super) fn password_at(line: &[u8], at: usize) -> Option<SecretMatch> {
    let rest = line[at..].strip_prefix(b"://")?;
    let rest = &rest[..rest.len().min(MAX_LOGIN_BYTES)];
    let is_login = |byte: &u8| !byte.is_ascii_whitespace() && !b"/\"'`<>?#".contains(byte);
    let login = &rest[..prefix_len(rest, is_login)];
    let host = login.iter().rposition(|&byte| byte == b'@')?;
    let colon = login[..host].iter().position(|&byte| byte == b':')?;
    let password = &login[colon + 1..host];
    let from = at + 3 + colon + 1;
    (password.len() >= 3 && !is_placeholder(password) && host + 1 < login.len())
        .then_some(SecretMatch { range: from..from + password.len(), name: "password" })
}

/// Whether a shell or a template would replace this. `%40` is an escaped character, `%s` is not.
fn is_placeholder(password: &[u8]) -> bool {
    let is_escape = |at: usize| {
        let digits = password.get(at + 1..at + 3).unwrap_or_default();
        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
    };
    password.iter().enumerate().any(|(at, byte)| match byte {
        b'$' | b'{' | b'}' | b'*' => true,
        b'%' => !is_escape(at),
        _ => false,
    })
}

pub(super) fn is_word_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_mixed(bytes: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

/// The number of leading bytes that satisfy `is`.
pub(super) fn prefix_len(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is(byte)).unwrap_or(bytes.len())
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
