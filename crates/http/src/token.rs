//! The secret that every request must carry.

use std::fmt;

/// A token, stored as its hash: it cannot be printed, and comparison takes constant time.
pub struct Token(blake3::Hash);

/// The hash of the bytes that a request presents as a token.
pub struct TokenHash(blake3::Hash);

/// A text is not a valid token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenError;

/// The shortest usual spelling of 256 bits: 43 characters of base64.
const LEAST_CHARS: usize = 43;

impl Token {
    /// Parses the content of a token file. Fails if the token is too short to be secret.
    pub fn new(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        let is_fit = text.len() >= LEAST_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_fit.then(|| Token(blake3::hash(text.as_bytes()))).ok_or(TokenError)
    }

    /// Whether these are the bytes of the token.
    pub fn is(&self, given: &[u8]) -> bool {
        self.has_hash(&Token::hash_of(given))
    }

    /// The hash of given bytes, to compare it with several tokens.
    pub fn hash_of(given: &[u8]) -> TokenHash {
        TokenHash(blake3::hash(given))
    }

    /// Whether this is the hash of the token.
    pub fn has_hash(&self, given: &TokenHash) -> bool {
        given.0 == self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token has at least {LEAST_CHARS} printable ASCII characters and no whitespace")
    }
}

impl std::error::Error for TokenError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_minimum_length_and_equals_only_itself() {
        let text = "0123456789".repeat(5);
        let token = Token::new(&format!("{text}\n")).unwrap();
        assert!(token.is(text.as_bytes()) && !token.is(&text.as_bytes()[1..]) && !token.is(b""));
        assert!(!format!("{token:?}").contains("0123"));
        for bad in ["", "short", &"a b".repeat(40), &"ä".repeat(60)] {
            assert!(Token::new(bad).is_err(), "{bad}");
        }
    }
}
