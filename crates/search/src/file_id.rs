//! The id of a file in a listing.

/// Identifies a file of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) directory: u32,
    pub(crate) entry: u32,
}
