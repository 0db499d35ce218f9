//! What is about to be done, written down before it is.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

use super::entry::Entry;
use super::{Journal, PENDING, log};
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;

/// Larger than any note: one of 50,000 files has some 20 MB.
const MAX_NOTE_BYTES: u64 = 1 << 30;

/// The file that says what a change is about to do. Its lock is held as long as the change is being
/// made; when the process dies, the lock goes and the file stays.
#[derive(Debug)]
pub(super) struct Pending {
    directory: PrivateDirectory,
    /// The note, from the journal's directory.
    name: PathBuf,
    _lock: OwnedFd,
}

/// A note that a process left behind, locked by us.
pub(super) struct Abandoned {
    pub(super) name: PathBuf,
    pub(super) file: File,
    pub(super) entries: Vec<Entry>,
}

/// Writes the first line of a note, synced as wanted. It comes to be where others look for it only when it is
/// whole and locked, so that nobody takes it for one that a crash left.
pub(super) fn begin_note(
    journal: &PrivateDirectory,
    directory: &str,
    entry: &Entry,
    sync: impl Fn(&File) -> std::io::Result<()>,
) -> std::io::Result<(PathBuf, File)> {
    let draft = format!("draft-{}", entry.token);
    let name = Path::new(directory).join(&entry.token);
    let mut file = journal.create_file(&draft, OFlags::APPEND)?;
    let lock = || rustix::fs::flock(&file, FlockOperation::LockExclusive);
    rustix::io::retry_on_intr(lock)?;
    let written = file
        .write_all(log::line(entry).as_bytes())
        .and_then(|()| sync(&file))
        .and_then(|()| journal.rename(&draft, &name));
    written.inspect_err(|_| drop(journal.remove(&draft)))?;
    Ok((name, file))
}

impl Pending {
    /// Writes it; when it returns, it is on disk.
    pub(super) fn write(journal: &PrivateDirectory, entry: &Entry) -> Result<Pending, FsError> {
        let write = || -> std::io::Result<Pending> {
            let (name, file) = begin_note(journal, PENDING, entry, File::sync_data)?;
            // The name must not be lost either.
            journal.sync_names(PENDING).inspect_err(|_| drop(journal.remove(&name)))?;
            Ok(Pending { directory: journal.clone(), name, _lock: file.into() })
        };
        let path = || journal.path().join(PENDING);
        write().map_err(|error| FsError::from_io(path(), "cannot be written", &error))
    }

    pub(super) fn remove(self) {
        // What is left behind is looked at by the next start, which finds nothing to do.
        let _ = self.directory.remove(&self.name);
    }
}

impl Journal {
    /// The changes that a crash interrupted, each with its file, which is ours now.
    pub(super) fn interrupted(&self) -> Result<Vec<(Entry, Pending)>, FsError> {
        let mut interrupted = Vec::new();
        for Abandoned { name, file, entries } in self.abandoned(PENDING)? {
            let directory = self.directory.clone();
            let pending = Pending { directory, name, _lock: file.into() };
            match entries.into_iter().next() {
                Some(entry) => interrupted.push((entry, pending)),
                // Its process ended it between our look at the directory and this one.
                None => pending.remove(),
            }
        }
        Ok(interrupted)
    }

    /// Notes in one of the journal's directories whose process is gone; they are ours now.
    pub(super) fn abandoned(&self, directory: &str) -> Result<Vec<Abandoned>, FsError> {
        let mut abandoned = Vec::new();
        for name in self.notes_in(directory)? {
            let open = self.directory.open_file(&name, OFlags::RDWR | OFlags::APPEND);
            let Ok(file) = open else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let entries = log::lines(&self.note(&name)).collect();
            abandoned.push(Abandoned { name, file, entries });
        }
        Ok(abandoned)
    }

    /// All changes that are being made or were interrupted, whoever holds them.
    pub(super) fn noted(&self) -> Result<Vec<Entry>, FsError> {
        let notes = self.notes_in(PENDING)?.into_iter().map(|name| self.note(&name));
        Ok(notes.flat_map(|bytes| log::lines(&bytes).next()).collect())
    }

    /// What a note says; nothing, if it cannot be read.
    pub(super) fn note(&self, name: &Path) -> Vec<u8> {
        self.directory.read(name, MAX_NOTE_BYTES).ok().flatten().unwrap_or_default()
    }

    /// The notes in one of the journal's directories, each from the journal's own.
    pub(super) fn notes_in(&self, directory: &str) -> Result<Vec<PathBuf>, FsError> {
        let within = |name: OsString| Path::new(directory).join(name);
        match self.directory.list(directory) {
            Ok(names) => Ok(names.into_iter().map(within).collect()),
            Err(error) => {
                let path = self.directory().join(directory);
                Err(FsError::from_io(path, "cannot be read", &error))
            }
        }
    }
}
