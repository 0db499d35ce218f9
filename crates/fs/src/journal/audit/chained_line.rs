//! One line of an audit log: a JSON object that has the hash of the line before it, and its own hash.
//!
//! `{"hash":"H","prev":"P","seq":N,…}`: H is the SHA-256 of the line without `"hash":"H",` and without its newline. P
//! is the H of the line before, or zeros. A hash is over bytes, so that checking it needs no JSON library.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// The `prev` of the first record.
pub(super) const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

const BEFORE_HASH: &str = "{\"hash\":\"";
const AFTER_HASH: &str = "\",";

/// The members that every record has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ChainLink {
    pub(super) hash: String,
    pub(super) prev: String,
    pub(super) seq: u64,
}

/// Makes a line without its newline. `event` is a JSON object with at least one member.
pub(super) fn make(prev: &str, seq: u64, event: &str) -> (String, String) {
    let members = event.strip_prefix('{').unwrap_or("}");
    let rest = format!("\"prev\":\"{prev}\",\"seq\":{seq},{members}");
    let hash = hash_of(rest.as_bytes());
    (format!("{BEFORE_HASH}{hash}{AFTER_HASH}{rest}"), hash)
}

/// The link of a line, and whether the line has the hash that it names. `None` if it is not a record.
pub(super) fn check(line: &[u8]) -> Option<(ChainLink, bool)> {
    let rest = line.strip_prefix(BEFORE_HASH.as_bytes())?;
    let (hash, rest) = rest.split_at_checked(NO_HASH.len())?;
    let rest = rest.strip_prefix(AFTER_HASH.as_bytes())?;
    let link: ChainLink = serde_json::from_slice(line).ok()?;
    let is_right = hash == hash_of(rest).as_bytes() && hash == link.hash.as_bytes();
    Some((link, is_right))
}

/// The hash of `{` and the rest of a line.
fn hash_of(rest: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"{");
    hasher.update(rest);
    let digits = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(digits[usize::from(nibble & 15)]);
    hasher.finalize().iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_own_hash_and_the_one_before() {
        let (first, hash) = make(NO_HASH, 1, r#"{"event":"x","n":1}"#);
        assert_eq!(
            first,
            format!(r#"{{"hash":"{hash}","prev":"{NO_HASH}","seq":1,"event":"x","n":1}}"#)
        );
        // As `sha256sum` computes it.
        assert_eq!(
            hash_of(b"}"),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        let (second, _) = make(&hash, 2, r#"{"event":"y"}"#);
        let (link, is_right) = check(second.as_bytes()).unwrap();
        assert_eq!((link.prev, link.seq, is_right), (hash, 2, true));
    }

    /// No changed byte goes unnoticed.
    #[test]
    fn every_changed_byte_is_noticed() {
        let (line, _) = make(NO_HASH, 7, r#"{"event":"call","tool":"Bash","x":"é\n"}"#);
        let bytes = line.as_bytes();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.to_vec();
                changed[at] ^= 1 << bit;
                assert!(!matches!(check(&changed), Some((_, true))), "byte {at}, bit {bit}");
            }
            assert!(!matches!(check(&bytes[..at]), Some((_, true))), "cut at {at}");
        }
        for text in ["", "{}", "null", "[]", "{\"hash\":\"\"}"] {
            assert_eq!(check(text.as_bytes()), None);
        }
    }

    /// A second member of the same name does not pass for the first.
    #[test]
    fn a_repeated_member_is_not_a_record() {
        let (line, _) = make(NO_HASH, 1, r#"{"seq":9,"event":"x"}"#);
        assert_eq!(check(line.as_bytes()), None);
    }
}
