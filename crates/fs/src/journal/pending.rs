//! What is about to be done, written down before it is.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::entry::Entry;
use super::{Journal, log};
use crate::error::FsError;

/// The file that says what a change is about to do. Its lock is held as long as the change is being
/// made; when the process dies, the lock goes and the file stays.
#[derive(Debug)]
pub(super) struct Pending {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Pending {
    /// Writes it; when it returns, it is on disk.
    pub(super) fn write(directory: &Path, entry: &Entry) -> Result<Pending, FsError> {
        let write = || -> std::io::Result<Pending> {
            let mut random = [0; 8];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
            let path = directory.join(format!("{:016x}", u64::from_ne_bytes(random)));
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            file.write_all(log::line(entry).as_bytes())?;
            file.sync_data()?;
            // The name must not be lost either.
            std::fs::File::open(directory)?.sync_data()?;
            Ok(Pending { path, _lock: file.into() })
        };
        write().map_err(|error| FsError::from_io(directory, "cannot be written", &error))
    }

    pub(super) fn remove(self) {
        // What is left behind is looked at by the next start, which finds nothing to do.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Journal {
    /// The changes that a crash interrupted, each with its file, which is ours now.
    pub(super) fn interrupted(&self) -> Result<Vec<(Entry, Pending)>, FsError> {
        let directory = self.directory.join("pending");
        let error = |error: &_| FsError::from_io(&directory, "cannot be read", error);
        let mut interrupted = Vec::new();
        let files = match directory.read_dir() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.map_err(|e| error(&e))?,
        };
        for file in files {
            let path = file.map_err(|e| error(&e))?.path();
            let Ok(file) = std::fs::File::open(&path) else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            let pending = Pending { path, _lock: file.into() };
            match log::lines(&bytes).next() {
                Some(entry) => interrupted.push((entry, pending)),
                // Cut off while it was written: nothing had been touched yet.
                None => pending.remove(),
            }
        }
        Ok(interrupted)
    }
}
