//! A self-check of the watches: now and then it stats some files for which no event arrived.
//!
//! A file that changed may have changed just now; then its event is in the queue at the next call. If there
//! is still no event, watches are unreliable here, and the root is no longer watched. That happens if a file
//! was linked outside of the tree and written through that link.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_fs::{BulkReader, Stamp};

use crate::cached_doc_id::CachedDocIdVersion;
use crate::doc_id::DocId;
use crate::listing::{ListedDirectory, invalidate_all};

/// Number of files in one check. They take as long as searching one file.
const CHECKED_FILES: usize = 64;

/// The time of the last check and its result.
#[derive(Debug, Default)]
pub(crate) struct WatchSelfCheck {
    last: Option<Instant>,
    /// The directory to continue with.
    next: usize,
    suspect: Option<Suspect>,
}

/// A file that changed without an event so far.
#[derive(Debug)]
struct Suspect {
    directory: usize,
    listed: Arc<ListedDirectory>,
    entry: usize,
    version: CachedDocIdVersion,
}

impl WatchSelfCheck {
    /// Whether an event is missing. Must be called after the queue was drained.
    pub(crate) fn missed_event(&mut self, listing: &[Arc<ListedDirectory>]) -> bool {
        self.suspect.take().is_some_and(|suspect| {
            let Suspect { directory, listed, entry, version } = suspect;
            // If the directory was listed again, an event arrived.
            let is_same = listing.get(directory).is_some_and(|now| Arc::ptr_eq(now, &listed));
            is_same && listed.cache.doc_ids[entry].version() == version
        })
    }

    /// Stats some files, unless a check just ran. If a file differs from its cached state, everything is
    /// invalidated for this call. Returns whether that happened.
    pub(crate) fn check_some(
        &mut self,
        tree: &BulkReader,
        listing: &[Arc<ListedDirectory>],
        pause: Duration,
        stamp_of: impl Fn(DocId) -> Option<Stamp>,
    ) -> bool {
        if self.last.is_some_and(|last| last.elapsed() < pause) {
            return false;
        }
        self.last = Some(Instant::now());
        let (mut checked, first) = (0, self.next);
        for at in (first..listing.len()).chain(0..first.min(listing.len())) {
            let listed = &listing[at];
            self.next = at + 1;
            for (entry, slot) in listed.cache.doc_ids.iter().enumerate() {
                let Some(cached) = slot.get().and_then(&stamp_of) else { continue };
                let path = listed.path.join(listed.name(listed.entries[entry]));
                checked += 1;
                if tree.stamp(&path) != Some(cached) {
                    invalidate_all(listing);
                    let (version, listed) = (slot.version(), listed.clone());
                    self.suspect = Some(Suspect { directory: at, listed, entry, version });
                    return true;
                }
            }
            if checked >= CHECKED_FILES {
                break;
            }
        }
        false
    }
}
