//! What is about to be done, written down before it is.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
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
    /// Writes it; when it returns, it is on disk. It comes to be where others look for it only when it is
    /// whole and locked, so that nobody takes it for one that a crash left.
    pub(super) fn write(journal: &Path, entry: &Entry) -> Result<Pending, FsError> {
        let directory = journal.join("pending");
        let write = || -> std::io::Result<Pending> {
            let draft = journal.join(format!("draft-{}", entry.token));
            let path = directory.join(&entry.token);
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&draft)?;
            rustix::io::retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))?;
            let written = file
                .write_all(log::line(entry).as_bytes())
                .and_then(|()| file.sync_data())
                .and_then(|()| std::fs::rename(&draft, &path))
                // The name must not be lost either.
                .and_then(|()| std::fs::File::open(&directory)?.sync_data());
            written.inspect_err(|_| {
                let _ = std::fs::remove_file(&draft);
                let _ = std::fs::remove_file(&path);
            })?;
            Ok(Pending { path, _lock: file.into() })
        };
        write().map_err(|error| FsError::from_io(&directory, "cannot be written", &error))
    }

    pub(super) fn remove(self) {
        // What is left behind is looked at by the next start, which finds nothing to do.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Journal {
    /// The changes that a crash interrupted, each with its file, which is ours now.
    pub(super) fn interrupted(&self) -> Result<Vec<(Entry, Pending)>, FsError> {
        let mut interrupted = Vec::new();
        for path in self.notes_in("pending")? {
            let Ok(file) = std::fs::File::open(&path) else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            let pending = Pending { path, _lock: file.into() };
            match log::lines(&bytes).next() {
                Some(entry) => interrupted.push((entry, pending)),
                // Its process ended it between our look at the directory and this one.
                None => pending.remove(),
            }
        }
        Ok(interrupted)
    }

    /// All changes that are being made or were interrupted, whoever holds them.
    pub(super) fn noted(&self) -> Result<Vec<Entry>, FsError> {
        let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
        let files = self.notes_in("pending")?.into_iter().map(read);
        Ok(files.flat_map(|bytes| log::lines(&bytes).next()).collect())
    }

    /// The files in one of the journal's directories.
    pub(super) fn notes_in(&self, name: &str) -> Result<Vec<PathBuf>, FsError> {
        let directory = self.directory.join(name);
        let list = || -> std::io::Result<Vec<PathBuf>> {
            directory.read_dir()?.map(|file| Ok(file?.path())).collect()
        };
        match list() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => {
                listed.map_err(|error| FsError::from_io(&directory, "cannot be read", &error))
            }
        }
    }
}
