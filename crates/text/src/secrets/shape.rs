//! Tokens by their shape: a beginning that only they have, and enough of the right letters.

use std::ops::Range;

/// Something secret in a line.
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) name: &'static str,
}

/// Which letters follow a beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// Capital letters and digits, and no more of them.
    Capital,
    /// Letters and digits.
    Plain,
    /// Also `-` and `_`.
    Wide,
    /// The same, and among the first of them small and capital letters and digits: words do not have that.
    Mixed,
}

struct Shape {
    name: &'static str,
    prefix: &'static str,
    letters: Letters,
    /// How many of them at least.
    least: usize,
}

const fn shape(name: &'static str, prefix: &'static str, letters: Letters, least: usize) -> Shape {
    Shape { name, prefix, letters, least }
}

/// The longer of two beginnings first.
const SHAPES: &[Shape] = &[
    shape("AWS key", "AKIA", Letters::Capital, 16),
    shape("AWS key", "ASIA", Letters::Capital, 16),
    shape("GitHub token", "ghp_", Letters::Plain, 36),
    shape("GitHub token", "gho_", Letters::Plain, 36),
    shape("GitHub token", "ghu_", Letters::Plain, 36),
    shape("GitHub token", "ghs_", Letters::Plain, 36),
    shape("GitHub token", "ghr_", Letters::Plain, 36),
    shape("GitHub token", "github_pat_", Letters::Wide, 40),
    shape("GitLab token", "glpat-", Letters::Wide, 20),
    shape("API key", "sk-ant-", Letters::Wide, 20),
    shape("API key", "sk-proj-", Letters::Wide, 20),
    shape("API key", "sk-", Letters::Mixed, 20),
    shape("Stripe key", "sk_live_", Letters::Plain, 16),
    shape("Stripe key", "sk_test_", Letters::Plain, 16),
    shape("Stripe key", "rk_live_", Letters::Plain, 16),
    shape("Slack token", "xoxb-", Letters::Wide, 20),
    shape("Slack token", "xoxp-", Letters::Wide, 20),
    shape("Slack token", "xoxa-", Letters::Wide, 20),
    shape("Slack token", "xoxr-", Letters::Wide, 20),
    shape("Slack token", "xoxs-", Letters::Wide, 20),
    shape("Slack token", "xapp-", Letters::Wide, 20),
    shape("Google key", "AIza", Letters::Wide, 35),
    shape("npm token", "npm_", Letters::Plain, 36),
    shape("PyPI token", "pypi-AgEI", Letters::Wide, 50),
    shape("Hugging Face token", "hf_", Letters::Plain, 34),
];

/// What tokens of all shapes begin with.
pub(super) const PREFIXES: [&str; SHAPES.len() + 1] = {
    let mut prefixes = [JWT; SHAPES.len() + 1];
    let mut at = 0;
    while at < SHAPES.len() {
        prefixes[at] = SHAPES[at].prefix;
        at += 1;
    }
    prefixes
};

/// An object in base64, twice: what a JWT is.
const JWT: &str = "eyJ";

/// Letters of each part of a JWT at least.
const LEAST_JWT: usize = 8;

/// Among so many of the first letters of a token all kinds are found.
const LOOKED_AT: usize = 64;

/// No user's name and password are longer.
const LONGEST_LOGIN: usize = 256;

/// What stands before a key that has no shape of its own, and how long that key is.
const AWS_SECRETS: [&str; 2] = ["aws_secret_access_key", "SecretAccessKey"];
const AWS_SECRET_LETTERS: usize = 40;

/// What is secret and begins here.
pub(super) fn shape_at(line: &[u8], at: usize) -> Option<Found> {
    match line[at] {
        b':' => password_at(line, at),
        b'a' | b'A' | b's' | b'S' | b'g' | b'x' | b'n' | b'p' | b'h' | b'r' | b'e'
            if begins_at(line, at) =>
        {
            let token = || SHAPES.iter().find_map(|shape| token_at(shape, line, at));
            jwt_at(line, at).or_else(token).or_else(|| aws_secret_at(line, at))
        }
        _ => None,
    }
}

/// Whether a token may begin here: nothing that could be part of it stands before.
pub(super) fn begins_at(line: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    match line[before] {
        // The sign of a line in a diff.
        b'-' => before == 0,
        // A newline and the like, written out.
        b'n' | b't' | b'r' => before > 0 && line[before - 1] == b'\\',
        letter => !is_wide(&letter),
    }
}

/// Whether a token can have this letter.
pub(super) fn is_part_of_a_token(letter: u8) -> bool {
    is_wide(&letter) || letter == b'.'
}

fn token_at(shape: &Shape, line: &[u8], at: usize) -> Option<Found> {
    let rest = line[at..].strip_prefix(shape.prefix.as_bytes())?;
    let is_letter: fn(&u8) -> bool = match shape.letters {
        Letters::Capital => |letter| letter.is_ascii_uppercase() || letter.is_ascii_digit(),
        Letters::Plain => u8::is_ascii_alphanumeric,
        Letters::Wide | Letters::Mixed => is_wide,
    };
    let first = &rest[..run(&rest[..rest.len().min(LOOKED_AT)], is_letter)];
    if first.len() < shape.least || (shape.letters == Letters::Mixed && !is_mixed(first)) {
        return None;
    }
    // It is one: now to its end, which is never looked at again.
    let length = run(rest, is_letter);
    let ends = shape.letters != Letters::Capital
        || (length == shape.least && !rest.get(length).is_some_and(is_wide));
    let end = at + shape.prefix.len() + length;
    ends.then_some(Found { range: at..end, name: shape.name })
}

/// Three parts divided by dots, of which the first two are objects.
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

/// The password in `://user:password@host`; `at` is where `://` is.
fn password_at(line: &[u8], at: usize) -> Option<Found> {
    let rest = line[at..].strip_prefix(b"://")?;
    let rest = &rest[..rest.len().min(LONGEST_LOGIN)];
    let is_login = |letter: &u8| !letter.is_ascii_whitespace() && !b"/\"'`<>?#".contains(letter);
    let login = &rest[..run(rest, is_login)];
    let host = login.iter().rposition(|&letter| letter == b'@')?;
    let colon = login[..host].iter().position(|&letter| letter == b':')?;
    let password = &login[colon + 1..host];
    // What a shell or a template would fill in is no password.
    let filled_in = password.iter().any(|letter| b"${}*%".contains(letter));
    let from = at + 3 + colon + 1;
    (password.len() >= 3 && !filled_in && host + 1 < login.len())
        .then_some(Found { range: from..from + password.len(), name: "password" })
}

fn aws_secret_at(line: &[u8], at: usize) -> Option<Found> {
    let rest = &line[at..];
    let named = AWS_SECRETS.iter().find(|name| {
        rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    })?;
    let rest = &rest[named.len()..];
    let between = run(&rest[..rest.len().min(8)], |letter| b"\"' \t:=".contains(letter));
    let rest = &rest[between..];
    let is_base64 = |letter: &u8| letter.is_ascii_alphanumeric() || b"+/".contains(letter);
    let length = run(&rest[..rest.len().min(AWS_SECRET_LETTERS + 1)], is_base64);
    let from = at + named.len() + between;
    (between > 0 && length == AWS_SECRET_LETTERS)
        .then_some(Found { range: from..from + length, name: "AWS secret key" })
}

fn is_wide(letter: &u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_')
}

fn is_mixed(letters: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| letters.iter().any(is);
    has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
}

/// How many of the first letters are such.
fn run(letters: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    letters.iter().position(|letter| !is(letter)).unwrap_or(letters.len())
}
