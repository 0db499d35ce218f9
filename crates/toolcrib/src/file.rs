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

    /// Gives the file to `take`, chunk by chunk, until it answers that it has enough. Answers whether the
    /// file ended. Ends early when the call is cancelled.
    pub fn chunks(
        &self,
        cx: &Cx<'_>,
        mut take: impl FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        // One byte more than the file has, so that its end shows in the first read of a small one.
        let size = (self.size() + 1).clamp(LEAST_CHUNK_BYTES, CHUNK_BYTES);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut chunk = vec![0; size];
        let mut offset = 0;
        loop {
            cx.check_cancelled()?;
            let read = self.file.read_at(&mut chunk, offset).map_err(|error| self.error(&error))?;
            offset += read as u64;
            if read > 0 && !take(&chunk[..read])? {
                return Ok(false);
            }
            if read < chunk.len() {
                return Ok(true);
            }
        }
    }

    fn error(&self, error: &FsError) -> Error {
        Error::from_fs(&self.shown, error)
    }
}
