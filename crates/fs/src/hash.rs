//! Content hashes.

use std::fmt;
use std::str::FromStr;

/// The BLAKE3 hash of a content. Equal hashes mean equal contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

/// Hex digits of the short form: 64 bits, enough to distinguish versions of a file.
const SHORT_DIGITS: usize = 16;

/// Fewer digits than this would match too many contents.
const MIN_DIGITS: usize = 12;

impl ContentHash {
    /// The hash of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        ContentHash(*blake3::hash(bytes).as_bytes())
    }

    /// The first digits, which replies show and callers send back.
    pub fn short(&self) -> String {
        self.to_string()[..SHORT_DIGITS].to_owned()
    }

    /// Whether a caller's hash, complete or abbreviated, matches.
    pub fn is(&self, given: &str) -> bool {
        let given = given.trim().to_lowercase();
        given.len() >= MIN_DIGITS && self.to_string().starts_with(&given)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({})", self.short())
    }
}

impl FromStr for ContentHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| format!("{text:?} is not a hash"))?;
        Ok(ContentHash(*hash.as_bytes()))
    }
}

/// Computes a hash from chunks.
#[derive(Default)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    /// Adds the next chunk.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.0.update(chunk);
    }

    /// The hash of all chunks.
    pub fn finish(&self) -> ContentHash {
        ContentHash(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_can_be_parsed_and_is_independent_of_chunks() {
        let hash = ContentHash::of(b"hello");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.short().len(), SHORT_DIGITS);
        let mut hasher = ContentHasher::default();
        hasher.feed(b"hel");
        hasher.feed(b"lo");
        assert_eq!(hasher.finish(), hash);
        assert!("hello".parse::<ContentHash>().is_err());
    }
}
