//! An index at work in one search.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_fs::Stamp;

use crate::grep::Grep;
use crate::index::{Index, Narrowed, Place, Verdict, Work};

/// What an index knows about the files of a search, and what it does not.
pub(crate) struct Narrowing {
    index: Arc<Index>,
    /// Nothing, if it cannot help here.
    narrowed: Option<Narrowed>,
    /// Files that it does not know.
    unknown: AtomicUsize,
}

/// So many files that are not in the index are a reason to take them in.
const WORTH_BUILDING: usize = 8;

impl Narrowing {
    /// Nothing, where there is no index.
    pub(crate) fn begin(grep: &Grep<'_>) -> Option<Narrowing> {
        let index = grep.tables?.index(grep.tree, grep.listing)?;
        let narrowed = index.narrow(grep.pattern);
        Some(Narrowing { index, narrowed, unknown: AtomicUsize::new(0) })
    }

    /// Where a file with this stamp is in the index.
    pub(crate) fn find(&self, stamp: &Stamp) -> Option<Place> {
        let found = self.narrowed.as_ref()?.find(stamp);
        if found.is_none() {
            self.unknown.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// What is known of it.
    pub(crate) fn verdict(&self, place: Place, max_bytes: u64) -> Verdict {
        self.narrowed.as_ref().map_or(Verdict::Unknown, |known| known.verdict(place, max_bytes))
    }

    /// Takes in what was missing, once nobody waits for an answer.
    pub(crate) fn end(self, grep: &Grep<'_>) {
        let is_worth = match &self.narrowed {
            Some(_) => self.unknown.into_inner() >= WORTH_BUILDING,
            None => self.index.is_empty(),
        };
        // Only a table has all files of the root.
        if is_worth && grep.listing.hot {
            let directories = grep.listing.directories.clone();
            self.index.build_later(grep.tree, Work { directories, letters: grep.letters });
        }
    }
}
