//! After a crash: a change that was interrupted is finished, or was never made.

use std::collections::HashSet;

use super::entry::{Entry, FileChange, Version};
use super::{About, Journal, PATIENCE};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};

use crate::change::{Change, Step, is_temporary};
use crate::content::Content;
use crate::error::FsError;
use crate::file::{FileKind, read_entry};
use crate::lock::Locks;
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;
use crate::workspace::Workspace;

/// What became of a change that was interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// What had been about to happen.
    pub about: About,
    /// How it ended.
    pub outcome: Outcome,
    /// Files that somebody else has changed since, and that were left as they are.
    pub left_alone: Vec<std::path::PathBuf>,
}

/// How a change that was interrupted has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All of it had been made, and it is among the changes now.
    Finished,
    /// Everything is as it was before.
    TakenBack,
    /// It could be neither; the next start tries again.
    Failed(FsError),
}

impl Journal {
    /// Finishes or takes back the changes that a crash interrupted, as far as their files are in this
    /// workspace; others are left to those who can see them.
    pub fn recover(&self, workspace: &Workspace) -> Result<Vec<Recovered>, FsError> {
        let mut all = self.recover_followed(workspace)?;
        if self.noted()?.is_empty() {
            return Ok(all);
        }
        let shared = FlockOperation::NonBlockingLockShared;
        let _not_while_collecting = self.hold("collecting", shared, PATIENCE)?;
        for (entry, pending) in self.interrupted()? {
            // The temporary directory of a session, which is beside the journal, ends with its process.
            if entry.files.iter().all(|file| file.path().starts_with(self.directory())) {
                pending.remove();
                continue;
            }
            let places = entry.files.iter().map(|file| workspace.entry(&file.path()));
            let Some(places) = places.collect::<Option<Vec<_>>>() else { continue };
            let about = entry.about.clone();
            let mut left_alone = Vec::new();
            let made = entry.directories.iter().filter_map(|made| workspace.entry(&made.path()));
            let removed = entry
                .removed
                .iter()
                .filter_map(|removed| Some((workspace.entry(&removed.path())?, removed.mode)));
            let directories = (made.collect(), removed.collect());
            let outcome = match self.settle(entry, places, directories, &mut left_alone) {
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

    fn settle(
        &self,
        entry: Entry,
        places: Vec<ResolvedPath>,
        (made, removed): (Vec<ResolvedPath>, Vec<(ResolvedPath, u32)>),
        left_alone: &mut Vec<std::path::PathBuf>,
    ) -> Result<Outcome, FsError> {
        // The last thing before a note goes is the line in the log; a crash between the two left both.
        if self.entries()?.iter().any(|done| done.token == entry.token) {
            return Ok(Outcome::Finished);
        }
        let locks = Locks::acquire(places.iter())?;
        sweep(&locks, &places)?;
        let standing = places.iter().map(content).collect::<Result<Vec<_>, _>>()?;
        let is =
            |now: &Option<Content>, version: &Option<Version>| Version::is(*version, now.as_ref());
        let files = || entry.files.iter().zip(&standing);
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
            let ours = is(now, &file.after) || self.is_torn(file, now.as_deref())?;
            if lost || !ours {
                left_alone.push(file.path());
                continue;
            }
            steps.push(Step::back_to(place, now.clone(), before).in_place(file.in_place));
        }
        let change = Change::new(steps).unneeded_directories(made).needed_directories(removed);
        change.commit(&locks, None)?;
        Ok(Outcome::TakenBack)
    }

    /// Whether a file that was being written in place is new at its front and old behind that.
    fn is_torn(&self, file: &FileChange, now: Option<&[u8]>) -> Result<bool, FsError> {
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

/// Removes new files that a crash left beside these places, between getting a name and the right one. Whoever
/// makes a change holds the lock of the directory, so under it they belong to no running change.
fn sweep(locks: &Locks, places: &[ResolvedPath]) -> Result<(), FsError> {
    let mut swept = HashSet::new();
    for place in places {
        let Some((parent, _)) = place.split() else { continue };
        if !swept.insert(place.root.path().join(parent)) {
            continue;
        }
        let _lock = locks.in_turn(place)?;
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

/// The content of a file or symlink; nothing, if there is none, or a directory that a change was about to
/// replace.
fn content(place: &ResolvedPath) -> Result<Option<Content>, FsError> {
    match place.kind() {
        Some(FileKind::Directory) => Ok(None),
        _ => read_entry(place, u64::MAX - 1),
    }
}
