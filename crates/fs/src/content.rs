//! The content of a file or a symlink.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::hash::ContentHash;

/// The bytes of a file, or the target of a symlink. Clones share the bytes; the hash is computed once, on
/// demand.
#[derive(Clone)]
pub struct Content(Arc<Inner>);

struct Inner {
    bytes: Vec<u8>,
    is_link: bool,
    hash: OnceLock<ContentHash>,
}

impl Content {
    /// A symlink with this target.
    pub fn link(target: impl Into<Vec<u8>>) -> Content {
        Content::new(target.into(), true)
    }

    /// Whether it is the target of a symlink instead of the bytes of a file.
    pub fn is_link(&self) -> bool {
        self.0.is_link
    }

    /// The hash of the bytes.
    pub fn hash(&self) -> ContentHash {
        *self.0.hash.get_or_init(|| ContentHash::of(&self.0.bytes))
    }

    fn new(bytes: Vec<u8>, is_link: bool) -> Content {
        Content(Arc::new(Inner { bytes, is_link, hash: OnceLock::new() }))
    }
}

impl<T: Into<Vec<u8>>> From<T> for Content {
    fn from(bytes: T) -> Self {
        Content::new(bytes.into(), false)
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.is_link() == other.is_link() && self[..] == other[..])
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_link() { "Link" } else { "Content" };
        write!(f, "{kind}({} bytes)", self.len())
    }
}
