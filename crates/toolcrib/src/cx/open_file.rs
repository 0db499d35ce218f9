//! A file opened by a tool.

use std::path::{Path, PathBuf};

use toolcrib_fs::{FsError, ReadFile};

use crate::cx::Cx;
use crate::error::Error;

/// A file open for reading, with its path as replies show it.
#[derive(Debug)]
pub struct OpenFile {
    file: ReadFile,
    shown: String,
    path: PathBuf,
}

/// Large enough that the system calls cost little, small enough for the CPU cache.
const CHUNK_BYTES: u64 = 256 << 10;
const MIN_CHUNK_BYTES: u64 = 4 << 10;

impl OpenFile {
    pub(crate) fn new(file: ReadFile, shown: String, path: PathBuf) -> Self {
        OpenFile { file, shown, path }
    }

    /// Resolved path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path as replies show it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the size in bytes at the time of opening.
    pub fn size(&self) -> u64 {
        self.file.size()
    }

    /// Reads the whole file. Fails if it is larger than `max_bytes`.
    pub fn read_all(&self, max_bytes: u64) -> Result<Vec<u8>, Error> {
        self.file.read_all(max_bytes).map_err(|error| self.error(&error))
    }

    /// Reads the file in chunks from the beginning. The file may have any size.
    pub fn chunks<'a>(&'a self, cx: &'a Cx<'_>) -> Chunks<'a> {
        self.chunks_from(cx, 0)
    }

    /// Reads the file in chunks from `offset`.
    pub fn chunks_from<'a>(&'a self, cx: &'a Cx<'_>, offset: u64) -> Chunks<'a> {
        // One byte more than the file size, so that the first read of a small file also finds its end.
        let size = (self.size() + 1).clamp(MIN_CHUNK_BYTES, CHUNK_BYTES);
        let buffer = vec![0; usize::try_from(size).unwrap_or(0)];
        Chunks { file: self, cx, offset, buffer, ended: false }
    }

    /// Reads at most `most` bytes from the beginning.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>, Error> {
        self.part(0, most)
    }

    /// Reads at most `most` bytes from `offset`; fewer only at the end of the file.
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

/// Chunks of a file. Fails if the call is cancelled.
///
/// The iterator returns a new `Vec` per chunk; [`Chunks::next_chunk`] lends the same buffer each time.
pub struct Chunks<'a> {
    file: &'a OpenFile,
    cx: &'a Cx<'a>,
    offset: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl Chunks<'_> {
    /// Returns the next chunk, or `None` after the last.
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
