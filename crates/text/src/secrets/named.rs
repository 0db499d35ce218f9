//! Values without a distinctive format, recognized by the name before them: headers, fields of connection
//! strings, settings of package managers.

use std::ops::Range;

use super::shape::{Found, is_wide, run};

/// The required shape of a value.
#[derive(Clone, Copy)]
enum Value {
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

struct Named {
    name: &'static str,
    shown: &'static str,
    value: Value,
}

const fn named(name: &'static str, shown: &'static str, value: Value) -> Named {
    Named { name, shown, value }
}

const NAMES: &[Named] = &[
    named("aws_secret_access_key", "AWS secret key", Value::Exactly(40)),
    named("secretaccesskey", "AWS secret key", Value::Exactly(40)),
    named("accountkey", "Azure key", Value::AtLeast(40)),
    named("sharedaccesskey", "Azure key", Value::AtLeast(40)),
    named("sig", "Azure signature", Value::InQuery(43)),
    named("privatekey", "WireGuard key", Value::Exactly(43)),
    named("presharedkey", "WireGuard key", Value::Exactly(43)),
    named("authorization", "credentials", Value::Authorization),
    named("proxy-authorization", "credentials", Value::Authorization),
    named("auth", "credentials", Value::Login),
    named("_auth", "credentials", Value::Login),
    named("_authtoken", "token", Value::Token),
    named("_password", "password", Value::Token),
    named("x-api-key", "API key", Value::Token),
    named("x-auth-token", "token", Value::Token),
    named("x-vault-token", "token", Value::Token),
    named("private-token", "token", Value::Token),
];

/// Limit of the characters between a name and its value: quotes, whitespace, a sign.
const MOST_BETWEEN: usize = 8;

/// Limit of the length of a value that is examined.
const LONGEST: usize = 4 << 10;

/// Minimum length of a token that only its name indicates.
const LEAST_TOKEN: usize = 16;

/// Minimum length of a token in an `Authorization` header.
const LEAST_BEARER: usize = 8;

/// Minimum length of a token without digits.
const LEAST_LETTERS: usize = 24;

/// The secret value of a name that begins here.
pub(super) fn named_at(line: &[u8], at: usize) -> Option<Found> {
    let (named, value) = value_at(line, at)?;
    let range = secret_of(named, line, value)?;
    Some(Found { range, name: named.shown })
}

/// Whether the value of a name that begins here reaches the end of the line, so that it may continue.
pub(super) fn is_unfinished_at(line: &[u8], at: usize) -> bool {
    value_at(line, at).is_some_and(|(_, value)| value.end == line.len())
}

/// The name that begins here, and the range of its value.
fn value_at(line: &[u8], at: usize) -> Option<(&'static Named, Range<usize>)> {
    if !matches!(line[at].to_ascii_lowercase(), b'a' | b's' | b'p' | b'x' | b'_') {
        return None;
    }
    let rest = &line[at..];
    let is_here = |named: &&Named| {
        let name = named.name.as_bytes();
        let found = rest.get(..name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name))
            && rest.get(name.len()).is_some_and(|next| !is_wide(next))
    };
    let named = NAMES.iter().find(is_here)?;
    let in_query = at > 0 && b"?&".contains(&line[at - 1]);
    if matches!(named.value, Value::InQuery(_)) && !in_query {
        return None;
    }
    let from = at + named.name.len();
    let rest = &line[from..];
    let between = &rest[..run(&rest[..rest.len().min(MOST_BETWEEN)], is_between)];
    if !between.iter().any(|letter| b":=".contains(letter)) {
        return None;
    }
    let from = from + between.len();
    let rest = &line[from..line.len().min(from + LONGEST)];
    let length = match named.value {
        Value::Authorization => run(rest, |letter| is_value(letter) || *letter == b' '),
        _ => run(rest, is_value),
    };
    Some((named, from..from + length))
}

/// The secret part of a value, if it has the required shape.
fn secret_of(named: &Named, line: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    let text = &line[value.clone()];
    let is_secret = match named.value {
        Value::Exactly(letters) => {
            let padding = text.iter().rev().take_while(|letter| **letter == b'=').count();
            text.len() - padding == letters && text.iter().all(is_base64)
        }
        Value::AtLeast(letters) | Value::InQuery(letters) => text.len() >= letters,
        Value::Login => is_login(text),
        Value::Token => text.len() >= LEAST_TOKEN && is_token(text),
        Value::Authorization => {
            let scheme = run(text, u8::is_ascii_alphabetic);
            let blanks = run(&text[scheme..], |letter| *letter == b' ');
            let from = value.start + scheme + blanks;
            let text = &line[from..value.end];
            let text = &text[..run(text, is_value)];
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

fn is_between(letter: &u8) -> bool {
    b"\"'\\ \t:=".contains(letter)
}

fn is_value(letter: &u8) -> bool {
    is_base64(letter) || b"-_.~%".contains(letter)
}

fn is_base64(letter: &u8) -> bool {
    letter.is_ascii_alphanumeric() || b"+/=".contains(letter)
}

fn is_bearer(text: &[u8]) -> bool {
    text.len() >= LEAST_BEARER && is_token(text)
}

/// Whether it has letters and digits, or is long and in mixed case. `YOUR_TOKEN` is neither.
fn is_token(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let mixed_case = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    (has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic))
        || (mixed_case && text.len() >= LEAST_LETTERS)
}

/// Whether it is base64 of `user:password`.
fn is_login(text: &[u8]) -> bool {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if text.len() < LEAST_BEARER || !text.len().is_multiple_of(4) {
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

fn base64_digit(letter: &u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
