//! What a file says.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::hash::ContentHash;

/// What a file says: its bytes, held once however many hold them, and hashed once, when somebody asks.
#[derive(Clone)]
pub struct Content(Arc<Inner>);

struct Inner {
    bytes: Vec<u8>,
    hash: OnceLock<ContentHash>,
}

impl Content {
    /// The hash of the bytes.
    pub fn hash(&self) -> ContentHash {
        *self.0.hash.get_or_init(|| ContentHash::of(&self.0.bytes))
    }
}

impl<T: Into<Vec<u8>>> From<T> for Content {
    fn from(bytes: T) -> Self {
        Content(Arc::new(Inner { bytes: bytes.into(), hash: OnceLock::new() }))
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
        Arc::ptr_eq(&self.0, &other.0) || self[..] == other[..]
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.len())
    }
}
