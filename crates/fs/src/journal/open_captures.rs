//! What is kept of a change while somebody else makes it, noted file by file.
//!
//! The file's lock is held as long as the other may go on; when the process dies, the lock goes and the
//! file stays, and the next start makes a change of it.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::entry::{About, Effects, Entry, FileChange, KeptDirectory};
use super::pending::{Abandoned, begin_note};
use super::recover::{Outcome, Recovered};
use super::{BLOBS, FOLLOWED, Journal, log};
use crate::change_capture::{CaptureClass, ChangeCapture, Settling};
use crate::content::Content;
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;
use crate::random;
use crate::workspace::Workspace;

/// A note that grows.
#[derive(Debug)]
pub(crate) struct Followed {
    directory: PrivateDirectory,
    /// The note, from the journal's directory.
    name: PathBuf,
    file: std::fs::File,
    token: String,
}

impl Followed {
    /// Adds a file as it was.
    pub(crate) fn add_file(&mut self, file: FileChange) -> Result<(), FsError> {
        self.add(Effects::on_files(vec![file]))
    }

    /// Adds a directory as it was.
    pub(crate) fn add_directory(&mut self, directory: KeptDirectory) -> Result<(), FsError> {
        self.add(Effects { removed: vec![directory], ..Effects::default() })
    }

    fn add(&mut self, effects: Effects) -> Result<(), FsError> {
        let entry = Entry::new(self.token.clone(), About::default(), effects);
        let written = self.file.write_all(log::line(&entry).as_bytes());
        written.map_err(|error| {
            FsError::from_io(self.directory.path().join(&self.name), "cannot be written", &error)
        })
    }

    /// All of it is in the log, or was nothing.
    pub(crate) fn remove(self) {
        // What is left behind is looked at by the next start, which finds its token in the log.
        let _ = self.directory.remove(&self.name);
    }
}

impl Journal {
    /// Begins a note of what somebody else is about to change.
    pub(crate) fn follow(&self, about: &About) -> Result<Followed, FsError> {
        self.directory.make(&[BLOBS, FOLLOWED])?;
        let begin = || -> std::io::Result<Followed> {
            let token = random::hex::<16>()?;
            let entry = Entry::new(token.clone(), about.clone(), Effects::default());
            // It outlives the process without waiting for the disk.
            let (name, file) = begin_note(&self.directory, FOLLOWED, &entry, |_| Ok(()))?;
            Ok(Followed { directory: self.directory.clone(), name, file, token })
        };
        begin().map_err(|error| {
            FsError::from_io(self.directory().join(FOLLOWED), "cannot be written", &error)
        })
    }

    /// Keeps a content, without waiting for it to be on disk.
    pub(crate) fn keep(&self, content: &Content) -> Result<(), FsError> {
        self.store.put_soon(content)
    }

    /// Adds a change that somebody else has made; answers its number.
    pub(crate) fn add(
        &self,
        about: About,
        effects: Effects,
        note: Option<&Followed>,
    ) -> Result<u64, FsError> {
        self.directory.make(&[BLOBS])?;
        let token = match note {
            Some(note) => note.token.clone(),
            None => random::hex::<16>()
                .map_err(|errno| FsError::from_errno(self.directory(), "cannot be named", errno))?,
        };
        let id = self.append(Entry::new(token, about, effects))?;
        // What could not be collected now can be later.
        let _ = self.collect_now_and_then(id);
        Ok(id)
    }

    /// What others were changing when a crash came: made a change of, as far as it is in this workspace.
    pub(super) fn recover_followed(
        &self,
        workspace: &Workspace,
    ) -> Result<Vec<Recovered>, FsError> {
        let mut recovered = Vec::new();
        for Abandoned { name, file, entries } in self.abandoned(FOLLOWED)? {
            let Some(first) = entries.first() else {
                let _ = self.directory.remove(&name);
                continue;
            };
            let (about, token) = (first.about.clone(), first.token.clone());
            let note = Followed { directory: self.directory.clone(), name, file, token };
            let is_here = |path: PathBuf| workspace.seen_path(&path).is_some();
            if !entries.iter().flat_map(Entry::paths).all(is_here) {
                continue;
            }
            if self.entries()?.iter().any(|done| done.token == note.token) {
                note.remove();
                continue;
            }
            let followed = ChangeCapture::of_note(workspace, self, note, entries, about.clone());
            // The rules by which files are ignored are not known here: the change is a step of Undo.
            let class = |_: &Path, _: bool| CaptureClass::Much;
            let settling = Settling { class: &class, has_no_writer: &|_| true };
            let settled = followed.settle(false, &settling);
            let outcome = match settled.failed {
                Some(error) => Outcome::Failed(error),
                None if settled.files.is_empty() => continue,
                None => Outcome::Finished,
            };
            recovered.push(Recovered { about, outcome, left_alone: Vec::new() });
        }
        Ok(recovered)
    }

    /// Everything that notes of others' changes name.
    pub(super) fn followed(&self) -> Result<Vec<Entry>, FsError> {
        let notes = self.notes_in(FOLLOWED)?.into_iter().map(|name| self.note(&name));
        Ok(notes.flat_map(|bytes| log::lines(&bytes).collect::<Vec<_>>()).collect())
    }
}
