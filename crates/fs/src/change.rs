//! The only way to write files: complete new files are put in place atomically, all of them or none.
//!
//! The new content goes into an unnamed file, which gets the mode, owner and attributes of the old one, and
//! is on disk before it replaces the old one in a single rename. Readers and crashes see the old file or the
//! new one. Just before the rename, under the lock of its directory, the old file is read again: if it is not
//! what the change was made from, the change fails.
//!
//! Of several files either all change or none. With a journal this also holds when the process dies between
//! two of them: the previous content is stored first, and the next start completes or reverts the change.
//!
//! A path may change from a directory to a file or back. Then the steps that free the path come first, and
//! the steps that need it come later (`order.rs`).
//!
//! A change of many files holds few descriptors: only the first new files are written ahead, and the others
//! when it is their turn.
//!
//! A file is written in place, and only with a journal, if a rename cannot work (the directory is not
//! writable, the file is a mount point) or if the operator wants to keep hard links.

mod attributes;
mod directories;
mod in_place;
mod order;
mod prepared_step;
mod staged;
mod step;
mod symlink;

use std::collections::HashSet;
use std::path::PathBuf;

pub(crate) use self::staged::is_temporary;
pub use self::step::{NewMode, Step};

use self::directories::{MadeDirectories, RemovedDirectories};
use self::order::Order;
use self::prepared_step::{LastDirectory, Prepared};
use crate::error::{FsError, FsErrorKind};
use crate::file_kind::FileKind;
use crate::hash::ContentHash;
use crate::journal::{
    About, ContentChange, Effects, Journal, KeptDirectory, KeptPath, PendingChange,
};
use crate::lock::Locks;
use crate::parallel_io;
use crate::resolved_path::ResolvedPath;

/// The number of new files that are written before the first is renamed: each holds a descriptor, and the
/// limit of a process may be low. If the disk is full, most changes find out before they begin.
const MAX_WRITTEN_AHEAD: usize = 64;

/// A change that is ready to be committed.
#[derive(Debug, Default)]
#[must_use = "a change that is dropped without `commit` has not happened"]
pub struct Change {
    steps: Vec<Step>,
    hard_links: HardLinks,
    needed: Vec<(ResolvedPath, Option<u32>)>,
    unneeded: Vec<ResolvedPath>,
}

/// What happens to the other hard links of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HardLinks {
    /// They keep the old content: one of them may be outside the workspace, for instance in a package store.
    #[default]
    Break,
    /// They get the new content: the file is written in place.
    WriteThrough,
}

/// The journal that records a change.
#[derive(Debug)]
pub struct ChangeRecorder<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// The origin of the change.
    pub about: About,
}

impl<'a> ChangeRecorder<'a> {
    /// Records a change and syncs its new files at the same time.
    fn record(
        self,
        effects: Effects,
        contents: &[ContentChange<'_>],
        sync: impl Fn() -> Result<(), FsError> + Sync,
    ) -> Result<PendingChange<'a>, FsError> {
        let begin = || self.journal.begin(self.about, effects, contents);
        let (synced, pending) = parallel_io::both(sync, begin);
        let pending = pending?;
        match synced {
            Ok(()) => Ok(pending),
            Err(error) => {
                pending.close(None);
                Err(error)
            }
        }
    }
}

/// The result of a committed change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Its number in the journal. `None` without a journal.
    pub id: Option<u64>,
    /// The result of each file, in the given order.
    pub files: Vec<CommittedFile>,
}

/// The result of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedFile {
    /// The hash of the new content. `None` if the file was deleted.
    pub hash: Option<ContentHash>,
    /// It had other hard links, which still have the old content.
    pub hard_link_broken: bool,
    /// It was written in place, so that a concurrent reader may have seen a part of it.
    pub in_place: bool,
}

impl Change {
    /// Creates a change of these files. Each may occur at most once.
    pub fn new(steps: Vec<Step>) -> Change {
        Change { steps, ..Change::default() }
    }

    /// Sets what happens to other hard links.
    pub fn hard_links(mut self, hard_links: HardLinks) -> Change {
        self.hard_links = hard_links;
        self
    }

    /// Adds directories to create, parents first, with their modes if the umask does not decide on them. Existing ones are
    /// kept.
    pub fn needed_directories(mut self, directories: Vec<(ResolvedPath, Option<u32>)>) -> Change {
        self.needed = directories;
        self
    }

    /// Adds directories to remove if they are empty, parents first. One whose path a new file takes must be
    /// empty by then.
    pub fn unneeded_directories(mut self, directories: Vec<ResolvedPath>) -> Change {
        self.unneeded = directories;
        self
    }

    /// Acquires the locks for this change.
    pub fn lock(&self) -> Result<Locks, FsError> {
        Locks::acquire(self.steps.iter().map(|step| &step.place))
    }

    /// Fails if the change could not be committed. Changes nothing.
    pub fn check(&self) -> Result<(), FsError> {
        let order = self.order();
        let mut places = HashSet::new();
        for step in &self.steps {
            if !places.insert(step.place.path()) {
                let detail = "occurs twice in one change";
                return Err(FsError::new(FsErrorKind::Stale, step.place.path(), detail));
            }
            if order.must_wait(step) {
                step.check_later()?;
            } else {
                step.check()?;
            }
        }
        Ok(())
    }

    /// Commits the change, all of it or nothing. `locks` are those of [`Change::lock`], or of a change of the
    /// same files, so that they can be held from reading a file to replacing it. Fails if a file is no longer
    /// what the change was made from, or if it cannot be written.
    pub fn commit(
        self,
        locks: &Locks,
        recorder: Option<ChangeRecorder<'_>>,
    ) -> Result<Committed, FsError> {
        self.check()?;
        let order = self.order();
        let (later, first): (Vec<&Step>, Vec<&Step>) =
            self.steps.iter().partition(|step| order.must_wait(step));
        let (needed_later, needed_first): (Vec<&ResolvedPath>, Vec<&ResolvedPath>) = self
            .needed
            .iter()
            .map(|(place, _)| place)
            .partition(|place| order.directory_must_wait(place));
        let mut made = MadeDirectories::default();
        for place in needed_first {
            made.make(place)?;
        }
        let (mut prepared, mut directory) = (Vec::new(), LastDirectory::default());
        for step in &first {
            made.make_for(&step.place)?;
            let (kept, ahead) = (recorder.is_some(), prepared.len() < MAX_WRITTEN_AHEAD);
            prepared.push(Prepared::new(step, &mut directory, self.hard_links, kept, ahead)?);
        }
        let waiting: Vec<Prepared<'_>> = later.iter().map(|step| Prepared::later(step)).collect();
        let files: Vec<CommittedFile> =
            prepared.iter().chain(&waiting).map(Prepared::result).collect();
        let sync_ahead = || Prepared::sync(&prepared[..prepared.len().min(MAX_WRITTEN_AHEAD)]);
        let pending = match recorder {
            None => {
                sync_ahead()?;
                None
            }
            Some(recorder) => {
                let contents: Vec<_> = self.steps.iter().map(Step::contents).collect();
                let effects = Effects {
                    files: prepared.iter().chain(&waiting).map(Prepared::file_change).collect(),
                    made: all_made(&made, &later, &needed_later),
                    removed: self.unneeded.iter().filter_map(kept_directory).collect(),
                    ..Effects::default()
                };
                Some(recorder.record(effects, &contents, sync_ahead)?)
            }
        };
        let (mut done, mut later_effects) = (0, LaterEffects::default());
        let put = put_all(prepared, &mut directory, locks, || done += 1).and_then(|()| {
            self.perform_later_steps(&needed_later, waiting, locks, &mut later_effects)
        });
        let id = put.and_then(|()| pending.as_ref().map(|pending| pending.done()).transpose());
        let is_settled = match &id {
            Ok(_) => true,
            // If reverting fails, the pending record stays, and the next start tries again.
            Err(_) => {
                let later = revert(&later[..later_effects.done], &files[first.len()..], locks);
                drop(std::mem::take(&mut later_effects));
                revert(&first[..done], &files, locks) && later
            }
        };
        if let Some(pending) = pending.filter(|_| is_settled) {
            pending.close(id.as_ref().ok().copied().flatten());
        }
        let id = id.map_err(|error| if is_settled { error } else { error.unsettled() })?;
        later_effects.made.keep_with_modes(&self.needed);
        made.keep_with_modes(&self.needed);
        later_effects.removed.keep_removed();
        for directory in self.unneeded.iter().rev() {
            directories::remove_if_empty(&directory.root, &directory.relative);
        }
        Ok(Committed { id, files })
    }

    /// Removes the directories that are in the way of the later steps, and performs those.
    fn perform_later_steps(
        &self,
        needed: &[&ResolvedPath],
        mut waiting: Vec<Prepared<'_>>,
        locks: &Locks,
        later_effects: &mut LaterEffects,
    ) -> Result<(), FsError> {
        let is_in_the_way =
            |place: &&ResolvedPath| waiting.iter().any(|file| place.is_within(file.place()));
        for place in self.unneeded.iter().rev().filter(is_in_the_way) {
            later_effects.removed.remove(place)?;
        }
        for place in needed {
            later_effects.made.make(place)?;
        }
        for file in &waiting {
            later_effects.made.make_for(file.place())?;
        }
        // Descriptors of the previous directories are useless.
        let mut directory = LastDirectory::default();
        let ahead = waiting.len().min(MAX_WRITTEN_AHEAD);
        Prepared::write_and_sync(&mut waiting[..ahead], &mut directory)?;
        put_all(waiting, &mut directory, locks, || later_effects.done += 1)
    }

    fn order(&self) -> Order {
        Order::new(&self.steps, &self.unneeded)
    }
}

/// The effects of the later steps. Dropping it restores the directories.
#[derive(Default)]
struct LaterEffects {
    /// The number of completed steps.
    done: usize,
    // In this order: created directories are removed before the removed ones are restored.
    made: MadeDirectories,
    removed: RemovedDirectories,
}

/// Reverts completed steps. Returns whether all were reverted.
fn revert(steps: &[&Step], files: &[CommittedFile], locks: &Locks) -> bool {
    let revert_one = |step: &Step, file: &CommittedFile| {
        let _lock = locks.lock_one(&step.place)?;
        step.revert(file.in_place)
    };
    let made = steps.iter().zip(files).rev();
    made.fold(true, |all, (step, file)| revert_one(step, file).is_ok() && all)
}

/// All directories that a change creates, including those of its later steps.
fn all_made(
    made: &MadeDirectories,
    later: &[&Step],
    needed_later: &[&ResolvedPath],
) -> Vec<KeptPath> {
    let mut paths: Vec<PathBuf> = made.paths().collect();
    let parents = later.iter().flat_map(|step| directories::missing_parents(&step.place));
    let needed = needed_later
        .iter()
        .flat_map(|place| directories::missing_parents(place).into_iter().chain([place.path()]));
    paths.extend(parents.chain(needed));
    paths.sort();
    paths.dedup();
    paths.iter().map(|path| KeptPath::new(path)).collect()
}

/// A directory as recorded in the journal. `None` if it does not exist.
fn kept_directory(place: &ResolvedPath) -> Option<KeptDirectory> {
    let mode = place.mode().filter(|_| place.kind() == Some(FileKind::Directory))?;
    Some(KeptDirectory::new(&place.path(), mode))
}

/// Puts all files in place, and writes those that were not written ahead. Calls `done` for each.
fn put_all(
    prepared: Vec<Prepared<'_>>,
    directory: &mut LastDirectory,
    locks: &Locks,
    mut done: impl FnMut(),
) -> Result<(), FsError> {
    let mut rest = prepared.into_iter();
    let mut batch: Vec<Prepared<'_>> = rest.by_ref().take(MAX_WRITTEN_AHEAD).collect();
    while !batch.is_empty() {
        for file in batch {
            let _lock = locks.lock_one(file.place())?;
            file.put_in_place(directory, &mut done)?;
        }
        batch = rest.by_ref().take(MAX_WRITTEN_AHEAD).collect();
        Prepared::write_and_sync(&mut batch, directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::journal::Caps;

    #[test]
    fn a_change_whose_files_cannot_be_synced_is_not_pending() {
        let top = tempfile::tempdir().unwrap();
        let journal = Journal::open(top.path().join("state"), Caps::default()).unwrap();
        let content = Content::from("text");
        let pending = || std::fs::read_dir(top.path().join("state/pending")).unwrap().count();
        for (synced, expected) in [(Ok(()), 1), (Err(()), 0)] {
            let sync =
                || synced.map_err(|()| FsError::new(FsErrorKind::Io, "file", "cannot be synced"));
            let recorder = ChangeRecorder { journal: &journal, about: About::default() };
            let recorded = recorder.record(Effects::default(), &[(None, Some(&content))], sync);
            assert_eq!((recorded.is_ok(), pending()), (synced.is_ok(), expected));
            let _ = recorded.map(|pending| pending.close(None));
            assert_eq!(pending(), 0);
        }
    }
}
