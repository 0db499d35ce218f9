//! A file that a tool has open.

use std::path::{Path, PathBuf};

use toolcrib_fs::{FsError, ReadFile};

use crate::cx::Cx;
use crate::error::Error;

/// A file open for reading, with the name that replies know it by.
#[derive(Debug)]
pub struct OpenFile {
    file: ReadFile,
    shown: String,
    path: PathBuf,
}

/// Large enough that the calls cost nothing beside the work, small enough to stay in the cache.
const CHUNK_BYTES: u64 = 256 << 10;
const LEAST_CHUNK_BYTES: u64 = 4 << 10;

impl OpenFile {
    pub(crate) fn new(file: ReadFile, shown: String, path: PathBuf) -> Self {
        OpenFile { file, shown, path }
    }

    /// Its real path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its path as replies show it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Its size in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.file.size()
    }

    /// All of it, if that is no more than `max_bytes`.
    pub fn read_all(&self, max_bytes: u64) -> Result<Vec<u8>, Error> {
        self.file.read_all(max_bytes).map_err(|error| self.error(&error))
    }

    /// Its bytes in chunks, from the beginning, however large it is.
    pub fn chunks<'a>(&'a self, cx: &'a Cx<'_>) -> Chunks<'a> {
        self.chunks_from(cx, 0)
    }

    /// Its bytes in chunks, from `offset` on.
    pub fn chunks_from<'a>(&'a self, cx: &'a Cx<'_>, offset: u64) -> Chunks<'a> {
        // One byte more than the file has, so that its end shows in the first read of a small one.
        let size = (self.size() + 1).clamp(LEAST_CHUNK_BYTES, CHUNK_BYTES);
        let buffer = vec![0; usize::try_from(size).unwrap_or(0)];
        Chunks { file: self, cx, offset, buffer, ended: false }
    }

    /// The first bytes, at most so many.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>, Error> {
        self.part(0, most)
    }

    /// At most so many bytes from `offset` on; fewer only where the file ends.
    pub(crate) fn part(&self, offset: u64, most: usize) -> Result<Vec<u8>, Error> {
        let left = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; most.min(left)];
        let read = self.file.read_at(&mut bytes, offset).map_err(|error| self.error(&error))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn error(&self, error: &FsError) -> Error {
        Error::from_fs(&self.shown, error)
    }
}

/// The bytes of a file, chunk by chunk. Ends with an error when the call is cancelled.
///
/// As an iterator each chunk is a `Vec` of its own; [`Chunks::next_chunk`] lends one and the same.
pub struct Chunks<'a> {
    file: &'a OpenFile,
    cx: &'a Cx<'a>,
    offset: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl Chunks<'_> {
    /// The next chunk, nothing after the last.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.ended {
            return Ok(None);
        }
        self.cx.check_cancelled()?;
        let read = self.file.file.read_at(&mut self.buffer, self.offset);
        let read = read.map_err(|error| self.file.error(&error))?;
        self.offset += read as u64;
        self.ended = read < self.buffer.len();
        Ok((read > 0).then_some(&self.buffer[..read]))
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.next_chunk().map(|chunk| chunk.map(<[u8]>::to_vec)).transpose();
        if matches!(chunk, Some(Err(_))) {
            self.ended = true;
        }
        chunk
    }
}
