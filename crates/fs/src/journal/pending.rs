//! Pending changes, recorded before they are made.

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

/// Larger than any note: one about 50,000 files has some 20 MB.
const MAX_NOTE_BYTES: u64 = 1 << 30;

/// The file that describes a pending change. Its lock is held while the change is made. When the process
/// dies, the lock is released and the file stays.
#[derive(Debug)]
pub(crate) struct Pending {
    directory: PrivateDirectory,
    /// The path of the note, relative to the journal.
    name: PathBuf,
    _lock: OwnedFd,
}

/// A note of a crashed process, now locked by this one.
pub(super) struct AbandonedNote {
    pub(super) name: PathBuf,
    pub(super) file: File,
    pub(super) entries: Vec<Entry>,
}

/// Writes the first line of a note, and calls `sync`. The note is renamed into its directory only when it is
/// complete and locked, so that it is never mistaken for one of a crashed process.
pub(super) fn create_note(
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
    /// Writes and syncs it.
    pub(super) fn write(journal: &PrivateDirectory, entry: &Entry) -> Result<Pending, FsError> {
        let write = || -> std::io::Result<Pending> {
            let (name, file) = create_note(journal, PENDING, entry, File::sync_data)?;
            // The directory entry must be on disk, too.
            journal.sync_names(PENDING).inspect_err(|_| drop(journal.remove(&name)))?;
            Ok(Pending { directory: journal.clone(), name, _lock: file.into() })
        };
        let path = || journal.path().join(PENDING);
        write().map_err(|error| FsError::from_io(path(), "cannot be written", &error))
    }

    pub(crate) fn remove(self) {
        // If this fails, the next start examines it and finds nothing to do.
        let _ = self.directory.remove(&self.name);
    }
}

impl Journal {
    /// The changes that a crash interrupted, each with its file, now locked by this process.
    pub(crate) fn interrupted(&self) -> Result<Vec<(Entry, Pending)>, FsError> {
        let mut interrupted = Vec::new();
        for AbandonedNote { name, file, entries } in self.abandoned(PENDING)? {
            let directory = self.directory.clone();
            let pending = Pending { directory, name, _lock: file.into() };
            match entries.into_iter().next() {
                Some(entry) => interrupted.push((entry, pending)),
                // Its process completed it after the directory was listed.
                None => pending.remove(),
            }
        }
        Ok(interrupted)
    }

    /// The notes of crashed processes in a subdirectory, now locked by this process.
    pub(super) fn abandoned(&self, directory: &str) -> Result<Vec<AbandonedNote>, FsError> {
        let mut abandoned = Vec::new();
        for name in self.list_notes(directory)? {
            let open = self.directory.open_file(&name, OFlags::RDWR | OFlags::APPEND);
            let Ok(file) = open else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let entries = log::lines(&self.read_note(&name)).collect();
            abandoned.push(AbandonedNote { name, file, entries });
        }
        Ok(abandoned)
    }

    /// All changes that are in progress or were interrupted.
    pub(crate) fn pending_entries(&self) -> Result<Vec<Entry>, FsError> {
        let notes = self.list_notes(PENDING)?.into_iter().map(|name| self.read_note(&name));
        Ok(notes.flat_map(|bytes| log::lines(&bytes).next()).collect())
    }

    /// The content of a note. Empty if it cannot be read.
    pub(super) fn read_note(&self, name: &Path) -> Vec<u8> {
        self.directory.read(name, MAX_NOTE_BYTES).ok().flatten().unwrap_or_default()
    }

    /// The paths of the notes in a subdirectory, relative to the journal.
    pub(super) fn list_notes(&self, directory: &str) -> Result<Vec<PathBuf>, FsError> {
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
