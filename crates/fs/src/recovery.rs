//! Recovery after a crash: an interrupted change is completed or reverted.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};

use crate::change::{Change, Step, is_temporary};
use crate::change_capture::{CaptureClass, ChangeCapture, Settling};
use crate::content::Content;
use crate::error::FsError;
use crate::file::read_entry;
use crate::file_kind::FileKind;
use crate::journal::{About, Entry, FileChange, Journal, LOCK_TIMEOUT, Version};
use crate::lock::Locks;
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;
use crate::workspace::Workspace;

/// The recovery of one interrupted change.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// The origin of the change.
    pub about: About,
    /// The result.
    pub outcome: Outcome,
    /// Files that were changed by another program since, and so were not restored.
    pub left_alone: Vec<PathBuf>,
}

/// The result of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All files had been changed, and the change is in the log now.
    Finished,
    /// The change was reverted.
    Reverted,
    /// Both failed. The next start tries again.
    Failed(FsError),
}

impl Journal {
    /// Completes or reverts the changes that a crash interrupted, if all their files are in this workspace.
    /// Other changes are left to processes with the right workspace.
    pub fn recover(&self, workspace: &Workspace) -> Result<Vec<Recovered>, FsError> {
        let mut all = self.recover_captures(workspace)?;
        if self.pending_entries()?.is_empty() {
            return Ok(all);
        }
        let shared = FlockOperation::NonBlockingLockShared;
        let _collection_lock = self.lock_file("collecting", shared, LOCK_TIMEOUT)?;
        for (entry, pending) in self.interrupted()? {
            // The temporary directory of a session is beside the journal, and ends with its process.
            if entry.files.iter().all(|file| file.path().starts_with(self.directory())) {
                pending.remove();
                continue;
            }
            let places = entry.files.iter().map(|file| workspace.entry(&file.path()));
            let Some(places) = places.collect::<Option<Vec<_>>>() else { continue };
            let about = entry.about.clone();
            let mut left_alone = Vec::new();
            let made = entry.directories.iter().filter_map(|made| workspace.entry(&made.path()));
            let removed = entry.removed.iter().filter_map(|removed| {
                Some((workspace.entry(&removed.path())?, Some(removed.mode)))
            });
            let directories = (made.collect(), removed.collect());
            let outcome = match self.recover_change(entry, places, directories, &mut left_alone) {
                Ok(outcome) => {
                    pending.remove();
                    outcome
                }
                Err(error) => Outcome::Failed(error),
            };
            all.push(Recovered { about, outcome, left_alone });
        }
        Ok(all)
    }

    /// Turns the notes of crashed processes into changes, if their paths are in this workspace.
    fn recover_captures(&self, workspace: &Workspace) -> Result<Vec<Recovered>, FsError> {
        let mut recovered = Vec::new();
        for (note, entries) in self.abandoned_captures()? {
            let is_here = |path: PathBuf| workspace.seen_path(&path).is_some();
            if !entries.iter().flat_map(Entry::paths).all(is_here) {
                continue;
            }
            if self.is_logged(&note)? {
                note.remove();
                continue;
            }
            let about = entries.first().map(|first| first.about.clone()).unwrap_or_default();
            let capture = ChangeCapture::from_note(workspace, self, note, entries, about.clone());
            // The ignore rules are not known here, so the change counts as a step of Undo.
            let class = |_: &Path, _: bool| CaptureClass::Tracked;
            let settling = Settling { class: &class, has_no_writer: &|_| true };
            let settled = capture.settle(false, &settling);
            let outcome = match settled.failed {
                Some(error) => Outcome::Failed(error),
                None if settled.files.is_empty() => continue,
                None => Outcome::Finished,
            };
            recovered.push(Recovered { about, outcome, left_alone: Vec::new() });
        }
        Ok(recovered)
    }

    fn recover_change(
        &self,
        entry: Entry,
        places: Vec<ResolvedPath>,
        (made, removed): (Vec<ResolvedPath>, Vec<(ResolvedPath, Option<u32>)>),
        left_alone: &mut Vec<PathBuf>,
    ) -> Result<Outcome, FsError> {
        // The line in the log precedes the removal of the note. A crash in between leaves both.
        if self.entries()?.iter().any(|done| done.token == entry.token) {
            return Ok(Outcome::Finished);
        }
        let locks = Locks::acquire(places.iter())?;
        remove_temporary_files(&locks, &places)?;
        let current = places.iter().map(content).collect::<Result<Vec<_>, _>>()?;
        let is =
            |now: &Option<Content>, version: &Option<Version>| Version::is(*version, now.as_ref());
        let files = || entry.files.iter().zip(&current);
        if files().all(|(file, now)| is(now, &file.after)) {
            self.append(entry)?;
            return Ok(Outcome::Finished);
        }
        let mut steps = Vec::new();
        for ((file, now), place) in files().zip(places) {
            if is(now, &file.before) {
                continue;
            }
            let before = match &file.before {
                Some(version) => {
                    self.content(version)?.map(|bytes| (version.content(bytes), version.mode))
                }
                None => None,
            };
            let lost = file.before.is_some() && before.is_none();
            let ours = is(now, &file.after) || self.is_partially_written(file, now.as_deref())?;
            if lost || !ours {
                left_alone.push(file.path());
                continue;
            }
            steps.push(Step::restore(place, now.clone(), before).in_place(file.in_place));
        }
        let change = Change::new(steps).unneeded_directories(made).needed_directories(removed);
        change.commit(&locks, None)?;
        Ok(Outcome::Reverted)
    }

    /// Whether a file that was written in place has new content at its start and old content after that.
    fn is_partially_written(&self, file: &FileChange, now: Option<&[u8]>) -> Result<bool, FsError> {
        let (true, Some(now), Some(before), Some(after)) =
            (file.in_place, now, &file.before, &file.after)
        else {
            return Ok(false);
        };
        let (Some(before), Some(after)) = (self.content(before)?, self.content(after)?) else {
            return Ok(false);
        };
        let new = now.iter().zip(&after).take_while(|(a, b)| a == b).count();
        Ok(before.get(new..).is_some_and(|rest| now[new..] == *rest) || now[new..].is_empty())
    }
}

/// Removes temporary files that a crash left beside these paths. A change in progress holds the lock of its
/// directory, so under that lock they belong to no running change.
fn remove_temporary_files(locks: &Locks, places: &[ResolvedPath]) -> Result<(), FsError> {
    let mut swept = HashSet::new();
    for place in places {
        let Some((parent, _)) = place.split() else { continue };
        if !swept.insert(place.root.path().join(parent)) {
            continue;
        }
        let _lock = locks.lock_one(place)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = open_beneath::open(place.root.handle(), parent, flags, Mode::empty());
        let Some((directory, entries)) = directory.ok().and_then(|directory| {
            let entries = Dir::read_from(&directory).ok()?;
            Some((directory, entries))
        }) else {
            continue;
        };
        for entry in entries.flatten() {
            if is_temporary(entry.file_name().to_bytes()) {
                let _ = rustix::fs::unlinkat(&directory, entry.file_name(), AtFlags::empty());
            }
        }
    }
    Ok(())
}

/// The content of a file or symlink. `None` if it does not exist, or if it is a directory that the change was
/// to replace.
fn content(place: &ResolvedPath) -> Result<Option<Content>, FsError> {
    match place.kind() {
        Some(FileKind::Directory) => Ok(None),
        _ => read_entry(place, u64::MAX - 1),
    }
}
