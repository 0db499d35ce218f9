//! The only way to write: whole new files, put in place at once, all of them or none.
//!
//! The new content goes into a file that has no name yet, gets the old one's mode, owner and
//! attributes, and is on disk before it takes the old one's name in a single rename. Readers and
//! crashes see the old file or the new one. Under the lock of its directory, and just before the
//! rename, the old file is read once more: if it is not what the change was made from, nothing happens.
//!
//! Of several files either all change or none. With a journal that holds also when the process dies
//! between two of them: what was there before is kept first, and the next start sees to the rest.
//!
//! A name may change from a directory to a file or back. Then the steps that free it come first, and what takes
//! it comes later (`order.rs`).
//!
//! A change of many files holds few handles: only the first new files are written ahead, and the others when
//! it is their turn.
//!
//! Where a rename cannot work (the directory is not ours to write, the file is a mount point), or the
//! operator wants hard links kept, a file is written in place, and only with a journal.

mod attributes;
mod directories;
mod in_place;
mod link;
mod order;
mod prepared;
mod staged;
mod step;

use std::collections::HashSet;
use std::path::PathBuf;

pub(crate) use self::staged::is_temporary;
pub use self::step::{NewMode, Step};

use self::directories::{MadeDirectories, RemovedDirectories};
use self::order::Order;
use self::prepared::{LastDirectory, Prepared};
use crate::error::{FsError, FsErrorKind};
use crate::file::FileKind;
use crate::hash::ContentHash;
use crate::journal::{About, Effects, Journal, KeptDirectory, KeptPath};
use crate::lock::Locks;
use crate::resolved_path::ResolvedPath;

/// So many new files are written before the first takes its name: each holds a handle, and a process may have
/// few. If the disk is full, most changes find out before they have begun.
const MAX_WRITTEN_AHEAD: usize = 64;

/// A change that is ready to happen.
#[derive(Debug, Default)]
#[must_use = "a change that is dropped without `commit` has not happened"]
pub struct Change {
    steps: Vec<Step>,
    hard_links: HardLinks,
    needed: Vec<(ResolvedPath, u32)>,
    unneeded: Vec<ResolvedPath>,
}

/// What becomes of a file's other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HardLinks {
    /// They keep the old content: one of them may lie outside, in a package store for instance.
    #[default]
    Break,
    /// They get the new content: the file is written in place.
    WriteThrough,
}

/// Who keeps what a change replaces.
#[derive(Debug)]
pub struct ChangeRecorder<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// What it is told.
    pub about: About,
}

/// What there is to say about a change that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Its number in the journal, if there is one.
    pub id: Option<u64>,
    /// Each of its files, in the order given.
    pub files: Vec<CommittedFile>,
}

/// What there is to say about one file of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedFile {
    /// What it says now; nothing, if it is gone.
    pub hash: Option<ContentHash>,
    /// It had other names too; they still have the old content.
    pub hard_link_broken: bool,
    /// It was written in place: a reader in that moment may have seen half of it.
    pub in_place: bool,
}

impl Change {
    /// A change of these files, each at most once.
    pub fn new(steps: Vec<Step>) -> Change {
        Change { steps, ..Change::default() }
    }

    /// What becomes of other names.
    pub fn hard_links(mut self, hard_links: HardLinks) -> Change {
        self.hard_links = hard_links;
        self
    }

    /// Directories that are made with it, with these modes, each before those in it. One that is there stays.
    pub fn needed_directories(mut self, directories: Vec<(ResolvedPath, u32)>) -> Change {
        self.needed = directories;
        self
    }

    /// Directories that go with it if nothing is left in them, each before those in it. Where a file is to be
    /// in the place of one, it must be empty then.
    pub fn unneeded_directories(mut self, directories: Vec<ResolvedPath>) -> Change {
        self.unneeded = directories;
        self
    }

    /// The locks that it is to be made under.
    pub fn lock(&self) -> Result<Locks, FsError> {
        Locks::acquire(self.steps.iter().map(|step| &step.place))
    }

    /// Says whether it would happen, and touches nothing.
    pub fn check(&self) -> Result<(), FsError> {
        let order = self.order();
        let mut places = HashSet::new();
        for step in &self.steps {
            if !places.insert(step.place.path()) {
                let detail = "is to be changed twice in one change";
                return Err(FsError::new(FsErrorKind::Stale, step.place.path(), detail));
            }
            match order.comes_later(step) {
                true => step.check_later()?,
                false => step.check()?,
            }
        }
        Ok(())
    }

    /// Makes it happen, all of it or nothing. `locks` are those of [`Change::lock`], or of a change of
    /// the same files: what is held is not let go between reading a file and replacing it.
    pub fn commit(
        self,
        locks: &Locks,
        keeper: Option<ChangeRecorder<'_>>,
    ) -> Result<Committed, FsError> {
        self.check()?;
        let order = self.order();
        let (later, first): (Vec<&Step>, Vec<&Step>) =
            self.steps.iter().partition(|step| order.comes_later(step));
        let (needed_later, needed_first): (Vec<&ResolvedPath>, Vec<&ResolvedPath>) = self
            .needed
            .iter()
            .map(|(place, _)| place)
            .partition(|place| order.directory_comes_later(place));
        let mut made = MadeDirectories::default();
        for place in needed_first {
            made.make(place)?;
        }
        let (mut prepared, mut directory) = (Vec::new(), LastDirectory::default());
        for step in &first {
            made.make_for(&step.place)?;
            let (kept, ahead) = (keeper.is_some(), prepared.len() < MAX_WRITTEN_AHEAD);
            prepared.push(Prepared::new(step, &mut directory, self.hard_links, kept, ahead)?);
        }
        let ahead = prepared.len().min(MAX_WRITTEN_AHEAD);
        Prepared::write(&mut prepared[..ahead], &mut directory)?;
        let waiting: Vec<Prepared<'_>> = later.iter().map(|step| Prepared::later(step)).collect();
        let files: Vec<CommittedFile> =
            prepared.iter().chain(&waiting).map(Prepared::outcome).collect();
        let flight = match keeper {
            None => None,
            Some(keeper) => {
                let contents: Vec<_> = self.steps.iter().flat_map(Step::contents).collect();
                let effects = Effects {
                    files: prepared.iter().chain(&waiting).map(Prepared::file_change).collect(),
                    made: all_made(&made, &later, &needed_later),
                    removed: self.unneeded.iter().filter_map(kept_directory).collect(),
                    ..Effects::default()
                };
                Some(keeper.journal.begin(keeper.about, effects, &contents)?)
            }
        };
        let (mut done, mut moved) = (0, Moved::default());
        let put = put_all(prepared, &mut directory, locks, || done += 1)
            .and_then(|()| self.put_later(&needed_later, waiting, locks, &mut moved));
        let id = put.and_then(|()| flight.as_ref().map(|flight| flight.done()).transpose());
        let settled = match &id {
            Ok(_) => true,
            // What cannot be taken back now stays noted, and the next start tries again.
            Err(_) => {
                let later = take_back(&later[..moved.done], &files[first.len()..], locks);
                drop(std::mem::take(&mut moved));
                take_back(&first[..done], &files, locks) && later
            }
        };
        if let Some(flight) = flight.filter(|_| settled) {
            flight.close(id.as_ref().ok().copied().flatten());
        }
        let id = id.map_err(|error| if settled { error } else { error.unsettled() })?;
        moved.made.keep_with_modes(&self.needed);
        made.keep_with_modes(&self.needed);
        moved.removed.stay_removed();
        for directory in self.unneeded.iter().rev() {
            directories::remove_if_empty(&directory.root, &directory.relative);
        }
        Ok(Committed { id, files })
    }

    /// Removes the directories that are in the way of what waits, and puts that in place.
    fn put_later(
        &self,
        needed: &[&ResolvedPath],
        mut waiting: Vec<Prepared<'_>>,
        locks: &Locks,
        moved: &mut Moved,
    ) -> Result<(), FsError> {
        let is_in_the_way =
            |place: &&ResolvedPath| waiting.iter().any(|file| place.is_within(file.place()));
        for place in self.unneeded.iter().rev().filter(is_in_the_way) {
            moved.removed.remove(place)?;
        }
        for place in needed {
            moved.made.make(place)?;
        }
        for file in &waiting {
            moved.made.make_for(file.place())?;
        }
        // Handles of directories that were there before are of no use.
        let mut directory = LastDirectory::default();
        let ahead = waiting.len().min(MAX_WRITTEN_AHEAD);
        Prepared::write(&mut waiting[..ahead], &mut directory)?;
        put_all(waiting, &mut directory, locks, || moved.done += 1)
    }

    fn order(&self) -> Order {
        Order::of(&self.steps, &self.unneeded)
    }
}

/// What was done for the steps that wait for others. Dropped, its directories are as they were.
#[derive(Default)]
struct Moved {
    /// Steps that were made.
    done: usize,
    // In this order: those that were removed get their names back.
    made: MadeDirectories,
    removed: RemovedDirectories,
}

/// Takes back steps that were made; answers whether all were.
fn take_back(steps: &[&Step], files: &[CommittedFile], locks: &Locks) -> bool {
    let one = |step: &Step, file: &CommittedFile| {
        let _lock = locks.in_turn(&step.place)?;
        step.take_back(file.in_place)
    };
    let made = steps.iter().zip(files).rev();
    made.fold(true, |all, (step, file)| one(step, file).is_ok() && all)
}

/// The directories that a change makes, those among them that must wait for its first steps.
fn all_made(
    made: &MadeDirectories,
    later: &[&Step],
    needed_later: &[&ResolvedPath],
) -> Vec<KeptPath> {
    let mut paths: Vec<PathBuf> = made.paths().collect();
    let on_the_way = later.iter().flat_map(|step| directories::missing_on_the_way(&step.place));
    let needed = needed_later
        .iter()
        .flat_map(|place| directories::missing_on_the_way(place).into_iter().chain([place.path()]));
    paths.extend(on_the_way.chain(needed));
    paths.sort();
    paths.dedup();
    paths.iter().map(|path| KeptPath::new(path)).collect()
}

/// A directory as the journal keeps it, if it is there.
fn kept_directory(place: &ResolvedPath) -> Option<KeptDirectory> {
    let mode = place.mode().filter(|_| place.kind() == Some(FileKind::Directory))?;
    Some(KeptDirectory::new(&place.path(), mode))
}

/// Puts all in place, and writes those that are not written yet when it is their turn. Says `done` for each.
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
            let _lock = locks.in_turn(file.place())?;
            file.put(directory, &mut done)?;
        }
        batch = rest.by_ref().take(MAX_WRITTEN_AHEAD).collect();
        Prepared::write(&mut batch, directory)?;
    }
    Ok(())
}
