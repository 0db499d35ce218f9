//! Notes about the changes that another program is making, file by file.
//!
//! The lock of a note is held as long as the program may continue. When this process dies, the lock is
//! released and the note stays, and the next start turns it into a change.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::entry::{About, Effects, Entry, FileChange, KeptDirectory, KeptPath};
use super::pending::{AbandonedNote, create_note};
use super::{BLOBS, CAPTURES, Journal, log};
use crate::content::Content;
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;
use crate::random;

/// A note that grows.
#[derive(Debug)]
pub(crate) struct CaptureNote {
    directory: PrivateDirectory,
    /// The path of the note, relative to the journal.
    name: PathBuf,
    file: std::fs::File,
    token: String,
}

impl CaptureNote {
    /// Adds the previous version of a file.
    pub(crate) fn add_file(&mut self, file: FileChange) -> Result<(), FsError> {
        self.add(Effects::on_files(vec![file]))
    }

    /// Adds a change that has ended because another program writes the file.
    pub(crate) fn add_finished(&mut self, file: FileChange) -> Result<(), FsError> {
        let ended = vec![KeptPath::new(&file.path())];
        self.add(Effects { not_kept: ended, ..Effects::on_files(vec![file]) })
    }

    /// Adds the previous state of a directory.
    pub(crate) fn add_directory(&mut self, directory: KeptDirectory) -> Result<(), FsError> {
        self.add(Effects { removed: vec![directory], ..Effects::default() })
    }

    /// Adds that the path has not been changed by the program since another one wrote it.
    pub(crate) fn add_ended(&mut self, path: &Path) -> Result<(), FsError> {
        self.add(Effects { not_kept: vec![KeptPath::new(path)], ..Effects::default() })
    }

    fn add(&mut self, effects: Effects) -> Result<(), FsError> {
        let entry = Entry::new(self.token.clone(), About::default(), effects);
        let written = self.file.write_all(log::line(&entry).as_bytes());
        written.map_err(|error| {
            FsError::from_io(self.directory.path().join(&self.name), "cannot be written", &error)
        })
    }

    /// Removes the note, after its changes are in the log or if there were none.
    pub(crate) fn remove(self) {
        // If this fails, the next start finds its token in the log and removes it.
        let _ = self.directory.remove(&self.name);
    }
}

impl Journal {
    /// Starts a note about the changes of another program.
    pub(crate) fn begin_capture(&self, about: &About) -> Result<CaptureNote, FsError> {
        self.prepare(&[BLOBS, CAPTURES])?;
        let begin = || -> std::io::Result<CaptureNote> {
            let token = random::hex::<16>()?;
            let entry = Entry::new(token.clone(), about.clone(), Effects::default());
            // It survives the process without being synced.
            let (name, file) = create_note(&self.directory, CAPTURES, &entry, |_| Ok(()))?;
            Ok(CaptureNote { directory: self.directory.clone(), name, file, token })
        };
        begin().map_err(|error| {
            FsError::from_io(self.directory().join(CAPTURES), "cannot be written", &error)
        })
    }

    /// Stores a content without syncing it.
    pub(crate) fn store_content(&self, content: &Content) -> Result<(), FsError> {
        self.store.put_unsynced(content)
    }

    /// Appends changes of another program to the log, all or none. Returns their numbers.
    pub(crate) fn add(
        &self,
        about: &About,
        changes: Vec<Effects>,
        note: Option<&CaptureNote>,
    ) -> Result<Vec<u64>, FsError> {
        self.prepare(&[BLOBS])?;
        let token = match note {
            Some(note) => note.token.clone(),
            None => random::hex::<16>().map_err(|errno| {
                FsError::from_errno(self.directory(), "cannot be resolved", errno)
            })?,
        };
        let entry = |effects| Entry::new(token.clone(), about.clone(), effects);
        let ids = self.append_all(changes.into_iter().map(entry).collect())?;
        for id in ids.clone() {
            // A failed collection is repeated later.
            let _ = self.collect_periodically(id);
        }
        Ok(ids.collect())
    }

    /// The notes of crashed processes that are not in the log yet, each with its entries.
    pub(crate) fn abandoned_captures(&self) -> Result<Vec<(CaptureNote, Vec<Entry>)>, FsError> {
        let mut captures = Vec::new();
        for AbandonedNote { name, file, entries } in self.abandoned(CAPTURES)? {
            let Some(first) = entries.first() else {
                let _ = self.directory.remove(&name);
                continue;
            };
            let token = first.token.clone();
            let note = CaptureNote { directory: self.directory.clone(), name, file, token };
            captures.push((note, entries));
        }
        Ok(captures)
    }

    /// Whether the changes of a note are in the log.
    pub(crate) fn is_logged(&self, note: &CaptureNote) -> Result<bool, FsError> {
        Ok(self.entries()?.iter().any(|done| done.token == note.token))
    }

    /// All entries of all notes.
    pub(super) fn captured_entries(&self) -> Result<Vec<Entry>, FsError> {
        let notes = self.list_notes(CAPTURES)?.into_iter().map(|name| self.read_note(&name));
        Ok(notes.flat_map(|bytes| log::lines(&bytes).collect::<Vec<_>>()).collect())
    }
}
