//! Values without a distinctive format, recognized by the name before them: headers, fields of connection
//! strings, settings of package managers.

use std::ops::Range;

use super::shape::{SecretMatch, is_word_byte, prefix_len};

/// The required shape of a value.
#[derive(Clone, Copy)]
enum ValueShape {
    /// Base64 with exactly this many characters, without padding.
    Exactly(usize),
    /// Base64, possibly with `%` escapes, with at least this many characters.
    AtLeast(usize),
    /// Like `AtLeast`, as a parameter of a URL.
    InQuery(usize),
    /// A scheme of HTTP authentication with its credentials.
    Authorization,
    /// Base64 of `user:password`.
    Login,
    /// A mix of characters that no word has.
    Token,
}

struct NamedSecret {
    name: &'static str,
    shown: &'static str,
    value: ValueShape,
}

const fn named(name: &'static str, shown: &'static str, value: ValueShape) -> NamedSecret {
    NamedSecret { name, shown, value }
}

const NAMES: &[NamedSecret] = &[
    named("aws_secret_access_key", "AWS secret key", ValueShape::Exactly(40)),
    named("secretaccesskey", "AWS secret key", ValueShape::Exactly(40)),
    named("accountkey", "Azure key", ValueShape::AtLeast(40)),
    named("sharedaccesskey", "Azure key", ValueShape::AtLeast(40)),
    named("sig", "Azure signature", ValueShape::InQuery(43)),
    named("privatekey", "WireGuard key", ValueShape::Exactly(43)),
    named("presharedkey", "WireGuard key", ValueShape::Exactly(43)),
    named("authorization", "credentials", ValueShape::Authorization),
    named("proxy-authorization", "credentials", ValueShape::Authorization),
    named("auth", "credentials", ValueShape::Login),
    named("_auth", "credentials", ValueShape::Login),
    named("_authtoken", "token", ValueShape::Token),
    named("_password", "password", ValueShape::Token),
    named("x-api-key", "API key", ValueShape::Token),
    named("x-auth-token", "token", ValueShape::Token),
    named("x-vault-token", "token", ValueShape::Token),
    named("private-token", "token", ValueShape::Token),
];

/// Limit of the characters between a name and its value: quotes, whitespace, a sign.
const MAX_SEPARATOR_BYTES: usize = 8;

/// Limit of the length of a value that is examined.
const MAX_VALUE_BYTES: usize = 4 << 10;

/// Minimum length of a token that only its name indicates.
const MIN_TOKEN_BYTES: usize = 16;

/// Minimum length of a token in an `Authorization` header.
const MIN_BEARER_BYTES: usize = 8;

/// Minimum length of a token without digits.
const MIN_LETTERS_ONLY_BYTES: usize = 24;

/// The secret value of a name that begins here.
pub(super) fn named_at(line: &[u8], at: usize) -> Option<SecretMatch> {
    let (named, value) = value_at(line, at)?;
    let range = secret_of(named, line, value)?;
    Some(SecretMatch { range, name: named.shown })
}

/// Whether the value of a name that begins here reaches the end of the line, so that it may continue.
pub(super) fn is_unfinished_at(line: &[u8], at: usize) -> bool {
    value_at(line, at).is_some_and(|(_, value)| value.end == line.len())
}

/// The name that begins here, and the range of its value.
fn value_at(line: &[u8], at: usize) -> Option<(&'static NamedSecret, Range<usize>)> {
    if !matches!(line[at].to_ascii_lowercase(), b'a' | b's' | b'p' | b'x' | b'_') {
        return None;
    }
    let rest = &line[at..];
    let is_here = |named: &&NamedSecret| {
        let name = named.name.as_bytes();
        let found = rest.get(..name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name))
            && rest.get(name.len()).is_some_and(|next| !is_word_byte(next))
    };
    let named = NAMES.iter().find(is_here)?;
    let in_query = at > 0 && b"?&".contains(&line[at - 1]);
    if matches!(named.value, ValueShape::InQuery(_)) && !in_query {
        return None;
    }
    let from = at + named.name.len();
    let rest = &line[from..];
    let between = &rest[..prefix_len(&rest[..rest.len().min(MAX_SEPARATOR_BYTES)], is_between)];
    if !between.iter().any(|byte| b":=".contains(byte)) {
        return None;
    }
    let from = from + between.len();
    let rest = &line[from..line.len().min(from + MAX_VALUE_BYTES)];
    let length = match named.value {
        ValueShape::Authorization => prefix_len(rest, |byte| is_value(byte) || *byte == b' '),
        _ => prefix_len(rest, is_value),
    };
    Some((named, from..from + length))
}

/// The secret part of a value, if it has the required shape.
fn secret_of(named: &NamedSecret, line: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    let text = &line[value.clone()];
    let is_secret = match named.value {
        ValueShape::Exactly(chars) => {
            let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
            text.len() - padding == chars && text.iter().all(is_base64)
        }
        ValueShape::AtLeast(chars) | ValueShape::InQuery(chars) => text.len() >= chars,
        ValueShape::Login => is_login(text),
        ValueShape::Token => text.len() >= MIN_TOKEN_BYTES && is_token(text),
        ValueShape::Authorization => {
            let scheme = prefix_len(text, u8::is_ascii_alphabetic);
            let blanks = prefix_len(&text[scheme..], |byte| *byte == b' ');
            let from = value.start + scheme + blanks;
            let text = &line[from..value.end];
            let text = &text[..prefix_len(text, is_value)];
            let is_secret = match &line[value.start..value.start + scheme] {
                basic if basic.eq_ignore_ascii_case(b"basic") => is_login(text),
                bearer if bearer.eq_ignore_ascii_case(b"bearer") => is_bearer(text),
                token if token.eq_ignore_ascii_case(b"token") => is_bearer(text),
                _ => false,
            };
            return (blanks > 0 && is_secret).then_some(from..from + text.len());
        }
    };
    is_secret.then_some(value)
}

fn is_between(byte: &u8) -> bool {
    b"\"'\\ \t:=".contains(byte)
}

fn is_value(byte: &u8) -> bool {
    is_base64(byte) || b"-_.~%".contains(byte)
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(byte)
}

fn is_bearer(text: &[u8]) -> bool {
    text.len() >= MIN_BEARER_BYTES && is_token(text)
}

/// Whether it has letters and digits, or is long and in mixed case. `YOUR_TOKEN` is neither.
fn is_token(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let mixed_case = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    (has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic))
        || (mixed_case && text.len() >= MIN_LETTERS_ONLY_BYTES)
}

/// Whether it is base64 of `user:password`.
fn is_login(text: &[u8]) -> bool {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if text.len() < MIN_BEARER_BYTES || !text.len().is_multiple_of(4) {
        return false;
    }
    let Some(digits) = digits.iter().map(base64_digit).collect::<Option<Vec<u8>>>() else {
        return false;
    };
    let bytes = digits.chunks(4).flat_map(|chunk| {
        let bits = chunk.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - chunk.len()));
        bits.to_be_bytes().into_iter().skip(1).take(chunk.len() - 1).collect::<Vec<u8>>()
    });
    let bytes: Vec<u8> = bytes.collect();
    let has_colon = bytes.iter().position(|byte| *byte == b':').is_some_and(|at| at > 0);
    has_colon && std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains(char::is_control))
}

fn base64_digit(byte: &u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
