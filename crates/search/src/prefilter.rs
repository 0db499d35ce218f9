//! An index at work in one search.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_fs::{Directory, Stamp};

use crate::grep::Grep;
use crate::index::{FileVerdict, Index, IndexPosition, Narrowed, Sieve, Work};
use crate::index_slot::Slot;
use crate::listing::{FileId, Listing};

/// What an index knows about the files of a search, and what it does not.
pub(crate) struct Narrowing {
    index: Arc<Index>,
    /// Nothing, if it cannot help here.
    narrowed: Option<Narrowed>,
    /// Files that it does not know.
    unknown: AtomicUsize,
}

/// A file that is left, and how many right before it are not.
pub(crate) struct Sifted {
    pub(crate) file: FileId,
    pub(crate) passed: u64,
}

/// So many files that are not in the index are a reason to take them in.
const WORTH_BUILDING: usize = 8;

impl Narrowing {
    /// Nothing, where there is no index.
    pub(crate) fn begin(grep: &Grep<'_>) -> Option<Narrowing> {
        let index = grep.tables?.index(grep.tree, grep.listing)?;
        if !grep.pattern.plan.is_all() {
            index.load();
        }
        let narrowed = index.narrow(grep.pattern, grep.max_bytes);
        Some(Narrowing { index, narrowed, unknown: AtomicUsize::new(0) })
    }

    /// Leaves out the files that are known to have no match without asking the disk for anything.
    pub(crate) fn sift(&self, grep: &Grep<'_>, files: &[FileId]) -> (Vec<Sifted>, u64) {
        let mut sieve = self.narrowed.as_ref().map(Narrowed::sieve);
        let mut left = Vec::new();
        let mut passed = 0;
        for files in files.chunk_by(|one, next| one.directory == next.directory) {
            let slots = &grep.listing.directories[files[0].directory as usize].slots;
            for file in files {
                let place = slots.get(file.entry as usize).and_then(Slot::get);
                let is_without =
                    |sieve: &mut Sieve<'_>| place.is_some_and(|place| sieve.is_without(place));
                if sieve.as_mut().is_some_and(is_without) {
                    passed += 1;
                } else {
                    left.push(Sifted { file: *file, passed: std::mem::take(&mut passed) });
                }
            }
        }
        (left, passed)
    }

    /// Where a file is in the index, and what it was when it was read, if it still is. Of one whose directory
    /// is watched that is noted, so that it need not be asked again.
    pub(crate) fn find<'d>(
        &self,
        listing: &Listing,
        file: FileId,
        directory: impl FnOnce() -> Option<&'d Directory>,
    ) -> Option<(IndexPosition, Stamp)> {
        let view = self.narrowed.as_ref()?.view();
        let listed = &listing.directories[file.directory as usize];
        let slot = listed.slots.get(file.entry as usize);
        if let Some(place) = slot.and_then(Slot::get)
            && let Some(stamp) = view.stamp(place)
        {
            return Some((place, stamp));
        }
        let (stamp, version) = listed.ask(directory()?, file.entry as usize)?;
        let Some(place) = view.find(&stamp) else {
            self.unknown.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if let Some((slot, version)) = slot.zip(version) {
            slot.put(version, place);
        }
        Some((place, stamp))
    }

    /// What is known of it.
    pub(crate) fn verdict(&self, place: IndexPosition) -> FileVerdict {
        self.narrowed.as_ref().map_or(FileVerdict::Unknown, |known| known.verdict(place))
    }

    /// Takes in what was missing, once nobody waits for an answer.
    pub(crate) fn end(self, grep: &Grep<'_>) {
        let is_worth = match &self.narrowed {
            Some(_) => self.unknown.load(Ordering::Relaxed) >= WORTH_BUILDING,
            None => self.index.is_empty(),
        };
        // Only a table has all files of the root.
        if !grep.listing.hot {
            return;
        }
        let directories = grep.listing.directories.clone();
        let is_kept = grep.tables.is_some_and(|tables| tables.is_indexed(grep.listing));
        let work = Work { directories, letters: grep.letters, is_kept };
        match is_worth {
            true => self.index.build_later(grep.tree, work),
            false if self.narrowed.is_some() => {
                self.index.try_later(grep.tree, work, grep.pattern);
            }
            false => {}
        }
    }
}
