//! The posting lists of a segment, which are most of its size. They are in memory, or in the file that the
//! segment is kept in. The page cache then holds the lists in use.
//!
//! Every read from the file is verified with checksums that were computed while the content was known to be
//! right. A file that is damaged while in use must not make a search miss a match.

use std::ops::Range;

use toolcrib_fs::{CachedFile, ContentHash};

/// Size of a block with one checksum. Smaller blocks would not be read faster, and need more checksums.
const BLOCK_BYTES: usize = 4 << 10;

/// All lists, concatenated.
#[derive(Debug)]
pub(super) enum PostingStorage {
    InMemory(Vec<u8>),
    InFile(Blocks),
}

/// A range at the end of a file.
#[derive(Debug)]
pub(super) struct Blocks {
    file: CachedFile,
    /// Its offset in the file.
    start: u64,
    length: usize,
    checksums: Vec<ContentHash>,
}

impl PostingStorage {
    /// Reads the lists on demand from the end of `file`, which has `file_bytes` bytes.
    pub(super) fn moved_to_file(self, file: CachedFile, file_bytes: usize) -> PostingStorage {
        match self {
            PostingStorage::InMemory(bytes) => PostingStorage::InFile(Blocks {
                file,
                start: file_bytes.saturating_sub(bytes.len()) as u64,
                length: bytes.len(),
                checksums: bytes.chunks(BLOCK_BYTES).map(ContentHash::of).collect(),
            }),
            in_file => in_file,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            PostingStorage::InMemory(bytes) => bytes.len(),
            PostingStorage::InFile(blocks) => blocks.length,
        }
    }

    /// Passes a range of the bytes to `look`. `None` if they cannot be read or are damaged.
    pub(super) fn with<T>(&self, range: Range<usize>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        match self {
            PostingStorage::InMemory(bytes) => bytes.get(range).map(look),
            PostingStorage::InFile(blocks) => blocks.with(range, look),
        }
    }
}

impl Blocks {
    fn with<T>(&self, range: Range<usize>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let (first, end) = (
            range.start / BLOCK_BYTES,
            range.end.div_ceil(BLOCK_BYTES).max(range.start / BLOCK_BYTES),
        );
        let (from, to) = (first * BLOCK_BYTES, (end * BLOCK_BYTES).min(self.length));
        let mut bytes = vec![0; to.checked_sub(from)?];
        let is_read = self.file.read_at(self.start + from as u64, &mut bytes);
        let found = bytes.chunks(BLOCK_BYTES).map(ContentHash::of);
        let is_whole = is_read && found.eq(self.checksums.get(first..end)?.iter().copied());
        let wanted = bytes.get(range.start - from..range.end.checked_sub(from)?)?;
        is_whole.then(|| look(wanted))
    }
}
