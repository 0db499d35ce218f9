//! Masks secrets: keys and tokens of known formats, and values supplied by the caller.
//!
//! Displayed command output and stored records are masked. Files never are. A token format is a distinctive
//! prefix followed by enough characters of the right kind, so that hashes, ids and encoded data are left
//! alone. The time is linear: a mismatch is detected within a few dozen bytes.

mod block;
mod command;
mod named;
mod shape;
mod table;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use self::block::KeyBlock;
use self::named::{is_unfinished_at, named_at};
use self::shape::{
    SecretMatch, begins_at, is_part_of_a_token, may_begin_token, password_at, token_at,
};

/// Shorter values occur in texts by chance.
const MIN_KNOWN_BYTES: usize = 8;

/// More than any environment has.
const MAX_KNOWN: usize = 200;

/// The known formats and the supplied values. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Secrets {
    known: Arc<[KnownSecret]>,
}

struct KnownSecret {
    name: String,
    value: String,
}

impl Secrets {
    /// Also masks these values, each with the name of its variable. Short values, plain words, paths and URLs
    /// are not treated as secrets, whatever their names.
    pub fn known(values: impl IntoIterator<Item = (String, String)>) -> Secrets {
        let is_place = |value: &str| {
            value.starts_with(['/', '~', '.']) || value.contains("://") || value.contains('\n')
        };
        let is_word = |value: &str| {
            value.len() < 2 * MIN_KNOWN_BYTES && value.bytes().all(|c| c.is_ascii_lowercase())
        };
        let is_secret =
            |value: &str| value.len() >= MIN_KNOWN_BYTES && !is_place(value) && !is_word(value);
        let mut known: Vec<KnownSecret> = values
            .into_iter()
            .map(|(name, value)| KnownSecret { name, value })
            .filter(|known| is_secret(&known.value))
            .take(MAX_KNOWN)
            .collect();
        // The longest first, since one value may begin with another. Duplicates are removed.
        known.sort_by(|a, b| (b.value.len(), &b.value).cmp(&(a.value.len(), &a.value)));
        known.dedup_by(|a, b| a.value == b.value);
        Secrets { known: known.into() }
    }

    /// The text with its secrets masked.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masker = Masker::new(self);
        let mut masked = String::new();
        for line in text.split_inclusive('\n') {
            let (body, ending) = match line.strip_suffix('\n') {
                Some(body) => (body, "\n"),
                None => (line, ""),
            };
            masked += &masker.line(body);
            masked += ending;
        }
        if masker.masked() == 0 { Cow::Borrowed(text) } else { Cow::Owned(masked) }
    }

    /// A shell command with its secrets masked: those of [`Secrets::mask`], and the passwords that its words name, such as
    /// `PGPASSWORD=…` and `--password …`.
    pub fn mask_command<'a>(&self, command: &'a str) -> Cow<'a, str> {
        let (mut masked, mut from) = (String::new(), 0);
        command::for_each_argument(command, &mut |range, name| {
            masked += &command[from..range.start];
            masked += &mask(name);
            from = range.end;
        });
        if from == 0 {
            return self.mask(command);
        }
        masked += &command[from..];
        Cow::Owned(self.mask(&masked).into_owned())
    }

    /// Whether a text contains a secret.
    pub fn are_in(&self, text: &str) -> bool {
        let mut masker = Masker::new(self);
        text.lines().any(|line| {
            masker.line(line);
            masker.masked() > 0
        })
    }

    /// The number of bytes at the end of a partial output that may be the beginning of a secret. Shown alone
    /// they could not be recognized.
    pub fn unfinished(&self, output: &[u8]) -> usize {
        let begins = output.iter().rposition(|&byte| !is_part_of_a_token(byte));
        let token = &output[begins.map_or(0, |at| at + 1)..];
        let shaped = (0..token.len())
            .find(|&at| begins_at(token, at) && may_begin_token(&token[at..]))
            .map_or(0, |at| token.len() - at);
        let shaped = shaped.max(unfinished_value(output));
        let known = self.known.iter().map(|known| {
            let value = known.value.as_bytes();
            let longest = output.len().min(value.len() - 1);
            (1..=longest).rev().find(|&length| output.ends_with(&value[..length])).unwrap_or(0)
        });
        known.max().unwrap_or(0).max(if shaped > MAX_HELD_BYTES { 0 } else { shaped })
    }

    /// Finds the secrets in a line, from an offset on.
    fn for_each_secret(&self, line: &str, from: usize, found: &mut impl FnMut(Range<usize>, &str)) {
        let bytes = line.as_bytes();
        let mut at = from;
        while at < bytes.len() {
            if let Some(known) = self.known_at(&bytes[at..]) {
                found(at..at + known.value.len(), &known.name);
                at += known.value.len();
            } else if let Some(shaped) = secret_at(bytes, at) {
                at = shaped.range.end;
                found(shaped.range, shaped.name);
            } else {
                at += 1;
            }
        }
    }

    /// The supplied value that begins here.
    fn known_at(&self, rest: &[u8]) -> Option<&KnownSecret> {
        self.known.iter().find(|known| rest.starts_with(known.value.as_bytes()))
    }
}

/// The secret of a known format that begins here.
fn secret_at(line: &[u8], at: usize) -> Option<SecretMatch> {
    if line[at] == b':' {
        return password_at(line, at);
    }
    let begins = begins_at(line, at);
    let token = begins.then(|| token_at(line, at)).flatten();
    token.or_else(|| begins.then(|| named_at(line, at)).flatten())
}

/// The number of bytes at the end of an output that are a name and the beginning of its secret value.
fn unfinished_value(output: &[u8]) -> usize {
    let line = output.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let line = &output[line.max(output.len().saturating_sub(MAX_HELD_BYTES))..];
    let held = (0..line.len()).find(|&at| begins_at(line, at) && is_unfinished_at(line, at));
    held.map_or(0, |at| line.len() - at)
}

/// Longer than any token. Longer sequences are data.
const MAX_HELD_BYTES: usize = 4 << 10;

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.known.iter().map(|known| known.name.as_str());
        f.debug_list().entries(names).finish()
    }
}

/// What replaces a secret.
fn mask(name: &str) -> String {
    format!("{MASK}{name}]")
}

/// How every mask begins.
const MASK: &str = "[masked: ";

/// Names of secrets are shorter.
const MAX_NAME: usize = 60;

/// The masks in a text, such as `[masked: GitHub token]`.
pub fn masks(text: &[u8]) -> impl Iterator<Item = &str> {
    memchr::memmem::find_iter(text, MASK).filter_map(|start| {
        let rest = text.get(start..)?;
        let end = rest.iter().take(MASK.len() + MAX_NAME).position(|byte| *byte == b']')?;
        let mask = std::str::from_utf8(rest.get(..=end)?).ok()?;
        (end > MASK.len() && !mask.contains(char::is_control)).then_some(mask)
    })
}

/// Masks a text line by line. It has state, since a private key has many lines.
#[derive(Debug)]
pub struct Masker<'s> {
    secrets: &'s Secrets,
    block: KeyBlock,
    masked: usize,
}

impl<'s> Masker<'s> {
    /// A masker at the beginning of a text.
    pub fn new(secrets: &'s Secrets) -> Masker<'s> {
        Masker { secrets, block: KeyBlock::default(), masked: 0 }
    }

    /// The number of bytes at the end of an output that may be the beginning of a secret. See
    /// [`Secrets::unfinished`].
    pub fn unfinished(&self, output: &[u8]) -> usize {
        self.secrets.unfinished(output)
    }

    /// The number of masked values.
    pub fn masked(&self) -> usize {
        self.masked
    }

    /// Masks the next line, given without its line ending.
    pub fn line<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        let mut shown = String::new();
        let mut from = 0;
        let mut mask = |range: Range<usize>, name: &str| {
            shown += &line[from..range.start];
            shown += &self::mask(name);
            from = range.end;
            self.masked += 1;
        };
        let key = self.block.part_of_key(line).unwrap_or(line.len()..line.len());
        self.secrets.for_each_secret(&line[..key.start], 0, &mut mask);
        if !key.is_empty() {
            mask(key.clone(), "private key");
        }
        self.secrets.for_each_secret(line, key.end, &mut mask);
        if from == 0 && shown.is_empty() {
            return Cow::Borrowed(line);
        }
        shown += &line[from..];
        Cow::Owned(shown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A token of each format, assembled here so that none is in this file as a whole.
    fn tokens() -> Vec<(&'static str, String)> {
        let mixed = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbCdEfGhIjKlMnOpQrStUvWxYz0123456789aBcD";
        let upper = "ABCDEFGHIJ234567";
        vec![
            ("AWS key", format!("AKIA{upper}")),
            ("GitHub token", format!("ghp_{}", &mixed[..36])),
            ("GitHub token", format!("github_pat_{}_{}", &mixed[..22], &mixed[..59])),
            ("GitLab token", format!("glpat-{}", &mixed[..20])),
            ("API key", format!("sk-{}", &mixed[..48])),
            ("API key", format!("sk-ant-api03-{}-{}", &mixed[..40], &mixed[..20])),
            ("Stripe key", format!("sk_live_{}", &mixed[..24])),
            ("Slack token", format!("xoxb-123456789012-{}", &mixed[..24])),
            ("Google key", format!("AIza{}", &mixed[..35])),
            ("npm token", format!("npm_{}", &mixed[..36])),
            ("JWT", format!("eyJ{}.eyJ{}.{}", &mixed[..20], &mixed[..40], &mixed[..43])),
            ("SendGrid key", format!("SG.{}.{}", &mixed[..22], &mixed[..43])),
            ("Vault token", format!("hvs.{}", &mixed[..24])),
            ("DigitalOcean token", format!("dop_v1_{}", "0a1b2c3d".repeat(8))),
            ("age key", format!("AGE-SECRET-KEY-1{}", "QPZRY9X8GF".repeat(6)[..58].to_owned())),
            ("Google token", format!("ya29.{}", &mixed[..40])),
            ("Shopify token", format!("shpat_{}", "0a1b2c3d".repeat(4))),
            ("Docker token", format!("dckr_pat_{}", &mixed[..27])),
            ("PyPI token", format!("pypi-AgEIcHlwaS5vcmc{}", &mixed[..60])),
            ("API key", format!("sk-{}", "0a1b2c3d".repeat(4))),
            ("Slack webhook", format!("hooks.slack.com/services/T0AB1/B0CD2/{}", &mixed[..24])),
        ]
    }

    #[test]
    fn every_format_is_masked_in_every_context() {
        for (name, token) in tokens() {
            for (before, after) in [
                ("", ""),
                ("export TOKEN=", ""),
                ("\"", "\","),
                ("+", " # added"),
                ("X-Token: ", "\r"),
                ("a\\n", "\\nb"),
                ("x é ", " é"),
            ] {
                let text = format!("{before}{token}{after}");
                let masked = Secrets::default().mask(&text).into_owned();
                assert_eq!(masked, format!("{before}[masked: {name}]{after}"), "{text}");
            }
        }
    }

    #[test]
    fn hashes_ids_and_placeholders_are_not_masked() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for text in [
            hex.to_owned(),
            format!("commit {}", &hex[..40]),
            "550e8400-e29b-41d4-a716-446655440000".to_owned(),
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAA".into(),
            "sha512-oV3tvqjyRJ0n4WmXQ7J0yhnHGoIhjS4m1n2xuyJb5v8T8ZqE9kzXJ2wY0ZlqWw8o4Zt1w==".into(),
            ".sk-folding-cube .sk-fading-circle-of-twelve-dots { color: red }".into(),
            "task-2024-ABCDEFGHIJKLMNOPQRSTUV1x risk-aB3dE5fG7hJ9kL1mN2pQ4rS6".into(),
            "eyJhbGciOiJIUzI1NiJ9 is how a token begins; eyJ.eyJ.x is none".into(),
            "AKIAIOSFODNN7 is too short, AKIAabcdefghijklmnop is no key".into(),
            "https://example.com:8080/a@b git@github.com:a/b.git http://user:$PASS@host/".into(),
            "Authorization: Bearer $TOKEN or Bearer YOUR_ACCESS_TOKEN, Basic realm=\"x\"".into(),
            "self._auth = HTTPBasicAuth(user); auth: authenticate, sig=verify(x)".into(),
            format!("\"sig\": \"{hex}\""),
            "X-Api-Key: your-api-key-goes-here; AccountKey=<key>".into(),
            "http://user:%s@host/ http://user:${PASS}@host/".into(),
            "npm_config_registry=https://registry.example npm_lifecycle_event=test".into(),
            "if line == \"-----BEGIN RSA PRIVATE KEY-----\" {\n    return true;\n}".into(),
            "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQjQ5ZsmVbZbQYt0nZ0iKx2m8U3cwCgYIKoZI\n".into(),
        ] {
            assert_eq!(Secrets::default().mask(&text), text.as_str());
        }
    }

    #[test]
    fn a_private_key_is_masked_except_for_its_frame() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let key = |prefix: &str| {
            format!(
                "{prefix}-----BEGIN PRIVATE KEY-----\n{prefix}{line}\n{prefix}{line}\n{prefix}AgEC\n\
                 {prefix}-----END PRIVATE KEY-----\nDone\n"
            )
        };
        let m = "[masked: private key]";
        let shown_by_cat = key("").replace('\n', "$\n");
        let masked = Secrets::default().mask(&shown_by_cat).into_owned();
        assert_eq!(masked.matches(&format!("{m}$\n")).count(), 3, "{masked}");
        for prefix in ["", "+", "    12\t", "id_rsa:3:"] {
            let expected = format!(
                "{prefix}-----BEGIN PRIVATE KEY-----\n{prefix}{m}\n{prefix}{m}\n{prefix}{m}\n\
                 {prefix}-----END PRIVATE KEY-----\nDone\n"
            );
            assert_eq!(Secrets::default().mask(&key(prefix)), expected);
        }
        let json = format!(
            "\"-----BEGIN EC PRIVATE KEY-----\\n{line}\\n-----END EC PRIVATE KEY-----\\n\""
        );
        let masked = Secrets::default().mask(&json).into_owned();
        assert!(!masked.contains(&line[..20]) && masked.contains("-----END EC"), "{masked}");
    }

    #[test]
    fn a_known_value_beside_a_part_of_a_key_is_masked_too() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let text = format!("-----BEGIN PRIVATE KEY-----\n{line}\nx 0123456789 y\n");
        let secrets = Secrets::known([("A_KEY".to_owned(), "0123456789".to_owned())]);
        let masked = secrets.mask(&text).into_owned();
        assert!(masked.ends_with("x [masked: A_KEY] [masked: private key]\n"), "{masked}");
    }

    #[test]
    fn passwords_in_urls_and_known_values_are_masked() {
        let secrets = Secrets::known([
            ("DB_PASSWORD".to_owned(), "correct horse".to_owned()),
            ("SHORT_KEY".to_owned(), "true".to_owned()),
            ("KEY_DIR".to_owned(), "/home/me/keys".to_owned()),
            ("PRIVATE_NAME".to_owned(), "production".to_owned()),
        ]);
        for (text, expected) in [
            ("git+https://me:hunter22@host/x", "git+https://me:[masked: password]@host/x"),
            ("x=correct horse;", "x=[masked: DB_PASSWORD];"),
            ("true /home/me/keys production", "true /home/me/keys production"),
        ] {
            assert_eq!(secrets.mask(text), expected);
        }
        assert_eq!(
            format!("{secrets:?}"),
            "[\"DB_PASSWORD\"]",
            "no value is printed for debugging"
        );
        for (text, expected) in [
            ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [masked: credentials]"),
            (
                "-H 'authorization: bearer abc12345'",
                "-H 'authorization: bearer [masked: credentials]'",
            ),
            (
                "\"Authorization\": \"token 0123abcd\"",
                "\"Authorization\": \"token [masked: credentials]\"",
            ),
            ("\"auth\": \"dXNlcjpwYXNz\"", "\"auth\": \"[masked: credentials]\""),
            ("//host/:_authToken=00000000-aaaa-1111", "//host/:_authToken=[masked: token]"),
            ("X-Api-Key: 0123456789abcdef01", "X-Api-Key: [masked: API key]"),
            ("http://u:p%40ssword@host/", "http://u:[masked: password]@host/"),
        ] {
            assert_eq!(secrets.mask(text), expected);
            assert!(secrets.are_in(text) && !secrets.are_in(expected));
        }
        let azure = format!("AccountName=x;AccountKey={}==;Suffix=y", "aB3/".repeat(21) + "aB");
        assert_eq!(secrets.mask(&azure), "AccountName=x;AccountKey=[masked: Azure key];Suffix=y");
        let sas = format!("https://a/b?sv=1&sig={}%3D", "aB3".repeat(15));
        assert_eq!(secrets.mask(&sas), "https://a/b?sv=1&sig=[masked: Azure signature]");
        let aws = format!("aws_secret_access_key = {}", "aB3/".repeat(10));
        assert_eq!(secrets.mask(&aws), "aws_secret_access_key = [masked: AWS secret key]");
    }

    #[test]
    fn a_possible_beginning_is_held_back() {
        let secrets = Secrets::known([("A_TOKEN".to_owned(), "0123456789".to_owned())]);
        for (text, held) in [
            ("all done", 0),
            ("Password: ", 0),
            ("key ghp_ab", 6),
            ("key gh", 2),
            ("Authorization: Bearer ab", 24),
            ("Authorization: none\nQ", 0),
            ("x 01234", 5),
            ("x 0123456789", 0),
            ("loading...", 0),
        ] {
            assert_eq!(secrets.unfinished(text.as_bytes()), held, "{text}");
        }
    }

    proptest! {
        /// Wherever the output is cut, no part of a token is shown.
        #[test]
        fn no_cut_shows_a_token(
            before in "[ -~]{0,20}[ =:\"]",
            after in "[ \"',;][ -~]{0,20}",
            which in 0_usize..21,
            cut in 0_usize..200,
        ) {
            let (_, token) = tokens().swap_remove(which);
            let text = format!("{before}{token}{after}");
            let cut = cut.min(text.len());
            let secrets = Secrets::default();
            let first = cut - secrets.unfinished(&text.as_bytes()[..cut]);
            let shown = secrets.mask(&text[..first]).into_owned() + &secrets.mask(&text[first..]);
            let part = &token[token.len() - 12..];
            prop_assert!(!shown.contains(part), "{shown}");
        }

        #[test]
        fn masking_is_idempotent(text in "[ -~\n]{0,300}") {
            let secrets = Secrets::default();
            let once = secrets.mask(&text).into_owned();
            prop_assert_eq!(secrets.mask(&once), once.as_str());
        }
    }

    /// Does not measure time: a quadratic scan would not finish.
    #[test]
    fn many_prefixes_take_linear_time() {
        for piece in
            ["sk-", "eyJ", "eyJa.", "ghp_", "://a:", "AKIA", "-----BEGIN PRIVATE KEY-----", "xoxb-"]
        {
            let text = piece.repeat(400_000 / piece.len());
            let _ = Secrets::default().mask(&text);
            let _ = Secrets::default().unfinished(text.as_bytes());
        }
    }
}
