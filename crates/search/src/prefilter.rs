//! Applies the index to one search.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_fs::{Directory, Stamp};

use crate::grep::Grep;
use crate::index::{FileVerdict, Index, IndexPosition, Narrowed, Sieve, Work};
use crate::index_slot::Slot;
use crate::listing::{FileId, Listing};

/// What the index knows about the files of a search.
pub(crate) struct Narrowing {
    index: Arc<Index>,
    /// `None` if the index cannot help here.
    narrowed: Option<Narrowed>,
    /// Number of files that are not indexed.
    unknown: AtomicUsize,
}

/// A file to read, and the number of files skipped right before it.
pub(crate) struct Sifted {
    pub(crate) file: FileId,
    pub(crate) passed: u64,
}

/// This many unindexed files trigger a build.
const WORTH_BUILDING: usize = 8;

impl Narrowing {
    /// `None` if there is no index.
    pub(crate) fn begin(grep: &Grep<'_>) -> Option<Narrowing> {
        let index = grep.tables?.index(grep.tree, grep.listing)?;
        if !grep.pattern.plan.is_all() {
            index.load();
        }
        let narrowed = index.narrow(grep.pattern, grep.max_bytes);
        Some(Narrowing { index, narrowed, unknown: AtomicUsize::new(0) })
    }

    /// Skips the files that are known to have no match without a stat.
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

    /// The index position and stat fingerprint of a file, if it is unchanged since it was indexed. In a
    /// watched directory the position is cached, so that the next search needs no stat.
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

    /// What the index knows about the file.
    pub(crate) fn verdict(&self, place: IndexPosition) -> FileVerdict {
        self.narrowed.as_ref().map_or(FileVerdict::Unknown, |known| known.verdict(place))
    }

    /// Starts a build or a self-check in the background, after the search.
    pub(crate) fn end(self, grep: &Grep<'_>) {
        let is_worth = match &self.narrowed {
            Some(_) => self.unknown.load(Ordering::Relaxed) >= WORTH_BUILDING,
            None => self.index.is_empty(),
        };
        // Only a cached listing has all files of the root.
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
