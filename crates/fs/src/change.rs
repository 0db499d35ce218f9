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
//! A change of many files holds few handles: only the first new files are written ahead, and the others when
//! it is their turn.
//!
//! Where a rename cannot work (the directory is not ours to write, the file is a mount point), or the
//! operator wants hard links kept, a file is written in place, and only with a journal.

mod attributes;
mod directories;
mod in_place;
mod prepared;
mod staged;
mod step;

use std::collections::HashSet;

pub(crate) use self::staged::is_temporary;
pub use self::step::{NewMode, Step};

use self::directories::MadeDirectories;
use self::prepared::{LastDirectory, Prepared};
use crate::error::{FsError, FsErrorKind};
use crate::hash::ContentHash;
use crate::journal::{About, Journal, KeptPath};
use crate::lock::Locks;
use crate::place::Place;

/// So many new files are written before the first takes its name: each holds a handle, and a process may have
/// few. If the disk is full, most changes find out before they have begun.
const MAX_WRITTEN_AHEAD: usize = 64;

/// A change that is ready to happen.
#[derive(Debug, Default)]
#[must_use = "a change that is dropped without `commit` has not happened"]
pub struct Change {
    steps: Vec<Step>,
    hard_links: HardLinks,
    unneeded: Vec<Place>,
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
pub struct Keeper<'a> {
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

    /// Directories that go with it if nothing is left in them, each before those in it.
    pub fn unneeded_directories(mut self, directories: Vec<Place>) -> Change {
        self.unneeded = directories;
        self
    }

    /// The locks that it is to be made under.
    pub fn lock(&self) -> Result<Locks, FsError> {
        Locks::acquire(self.steps.iter().map(|step| &step.place))
    }

    /// Says whether it would happen, and touches nothing.
    pub fn check(&self) -> Result<(), FsError> {
        let mut places = HashSet::new();
        for step in &self.steps {
            if !places.insert(step.place.path()) {
                let detail = "is to be changed twice in one change";
                return Err(FsError::new(FsErrorKind::Stale, step.place.path(), detail));
            }
            step.check()?;
        }
        Ok(())
    }

    /// Makes it happen, all of it or nothing. `locks` are those of [`Change::lock`], or of a change of
    /// the same files: what is held is not let go between reading a file and replacing it.
    pub fn commit(self, locks: &Locks, keeper: Option<Keeper<'_>>) -> Result<Committed, FsError> {
        self.check()?;
        let mut made = MadeDirectories::default();
        let (mut prepared, mut directory) = (Vec::new(), LastDirectory::default());
        for step in &self.steps {
            made.make_for(&step.place)?;
            let (kept, ahead) = (keeper.is_some(), prepared.len() < MAX_WRITTEN_AHEAD);
            prepared.push(Prepared::new(step, &mut directory, self.hard_links, kept, ahead)?);
        }
        let ahead = prepared.len().min(MAX_WRITTEN_AHEAD);
        Prepared::write(&mut prepared[..ahead], &mut directory)?;
        let files: Vec<CommittedFile> = prepared.iter().map(Prepared::outcome).collect();
        let flight = match keeper {
            None => None,
            Some(keeper) => {
                let contents: Vec<_> = self.steps.iter().flat_map(Step::contents).collect();
                let changes = prepared.iter().map(Prepared::file_change).collect();
                let made = made.paths().map(|path| KeptPath::new(&path)).collect();
                Some(keeper.journal.begin(keeper.about, changes, made, &contents)?)
            }
        };
        let mut done = 0;
        let put = put_all(prepared, &mut directory, locks, || done += 1);
        let id = put.and_then(|()| flight.as_ref().map(|flight| flight.done()).transpose());
        let settled = match &id {
            Ok(_) => true,
            // What cannot be taken back now stays noted, and the next start tries again.
            Err(_) => {
                let take_back = |step: &Step, file: &CommittedFile| {
                    let _lock = locks.in_turn(&step.place)?;
                    step.take_back(file.in_place)
                };
                let made = self.steps[..done].iter().zip(&files).rev();
                made.fold(true, |all, (step, file)| take_back(step, file).is_ok() && all)
            }
        };
        if let Some(flight) = flight.filter(|_| settled) {
            flight.close(id.as_ref().ok().copied().flatten());
        }
        let id = id.map_err(|error| if settled { error } else { error.unsettled() })?;
        made.keep();
        for directory in self.unneeded.iter().rev() {
            directories::remove_if_empty(&directory.root, &directory.relative);
        }
        Ok(Committed { id, files })
    }
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
