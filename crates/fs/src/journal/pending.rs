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

/// A note that a process left behind, locked by us.
pub(super) struct Abandoned {
    pub(super) path: PathBuf,
    pub(super) file: std::fs::File,
    pub(super) entries: Vec<Entry>,
}

/// Writes the first line of a note, synced as wanted. It comes to be where others look for it only when it is
/// whole and locked, so that nobody takes it for one that a crash left.
pub(super) fn begin_note(
    journal: &Path,
    directory: &Path,
    entry: &Entry,
    sync: impl Fn(&std::fs::File) -> std::io::Result<()>,
) -> std::io::Result<(PathBuf, std::fs::File)> {
    let draft = journal.join(format!("draft-{}", entry.token));
    let path = directory.join(&entry.token);
    let mut open = std::fs::OpenOptions::new();
    let mut file = open.append(true).create_new(true).mode(0o600).open(&draft)?;
    let lock = || rustix::fs::flock(&file, FlockOperation::LockExclusive);
    rustix::io::retry_on_intr(lock)?;
    let written = file
        .write_all(log::line(entry).as_bytes())
        .and_then(|()| sync(&file))
        .and_then(|()| std::fs::rename(&draft, &path));
    written.inspect_err(|_| drop(std::fs::remove_file(&draft)))?;
    Ok((path, file))
}

impl Pending {
    /// Writes it; when it returns, it is on disk.
    pub(super) fn write(journal: &Path, entry: &Entry) -> Result<Pending, FsError> {
        let directory = journal.join("pending");
        let write = || -> std::io::Result<Pending> {
            let (path, file) = begin_note(journal, &directory, entry, std::fs::File::sync_data)?;
            // The name must not be lost either.
            let synced =
                std::fs::File::open(&directory).and_then(|directory| directory.sync_data());
            synced.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
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
        for Abandoned { path, file, entries } in self.abandoned("pending")? {
            let pending = Pending { path, _lock: file.into() };
            match entries.into_iter().next() {
                Some(entry) => interrupted.push((entry, pending)),
                // Its process ended it between our look at the directory and this one.
                None => pending.remove(),
            }
        }
        Ok(interrupted)
    }

    /// Notes in one of the journal's directories whose process is gone; they are ours now.
    pub(super) fn abandoned(&self, name: &str) -> Result<Vec<Abandoned>, FsError> {
        let mut abandoned = Vec::new();
        for path in self.notes_in(name)? {
            let open = std::fs::OpenOptions::new().read(true).append(true).open(&path);
            let Ok(file) = open else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            let entries = log::lines(&bytes).collect();
            abandoned.push(Abandoned { path, file, entries });
        }
        Ok(abandoned)
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
