//! A net under the watches: now and then some files of which nothing was heard are asked for their stamps.
//!
//! One that was changed may have been changed just now; then its notice is in the queue at the next question. If
//! none came by then, notices cannot be relied on here, and the root is not watched any more. That happens
//! where a file got another name outside of the tree and was written through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_fs::{Stamp, TreeReader};

use crate::index::IndexPosition;
use crate::index_slot::Version;
use crate::listing::{Listed, forget_all};

/// So many files are asked at a time: as long as it takes to search one.
const ASKED: usize = 64;

/// When files were asked, and what was strange.
#[derive(Debug, Default)]
pub(crate) struct WatchSelfCheck {
    last: Option<Instant>,
    /// Where to go on.
    next: usize,
    suspect: Option<Suspect>,
}

/// A file that was changed, and no notice of it came yet.
#[derive(Debug)]
struct Suspect {
    directory: usize,
    listed: Arc<Listed>,
    entry: usize,
    version: Version,
}

impl WatchSelfCheck {
    /// Whether a notice never came. To be asked when the queue was read to its end.
    pub(crate) fn missed_one(&mut self, table: &[Arc<Listed>]) -> bool {
        self.suspect.take().is_some_and(|suspect| {
            let Suspect { directory, listed, entry, version } = suspect;
            // A directory that was listed again has been heard of.
            let is_same = table.get(directory).is_some_and(|now| Arc::ptr_eq(now, &listed));
            is_same && listed.slots[entry].version() == version
        })
    }

    /// Asks some files, unless that was done just now. If one is not what it is noted as, nothing is relied on
    /// for this question; answers whether that is so.
    pub(crate) fn look(
        &mut self,
        tree: &TreeReader,
        table: &[Arc<Listed>],
        pause: Duration,
        stamp_of: impl Fn(IndexPosition) -> Option<Stamp>,
    ) -> bool {
        if self.last.is_some_and(|last| last.elapsed() < pause) {
            return false;
        }
        self.last = Some(Instant::now());
        let (mut asked, first) = (0, self.next);
        for at in (first..table.len()).chain(0..first.min(table.len())) {
            let listed = &table[at];
            self.next = at + 1;
            for (entry, slot) in listed.slots.iter().enumerate() {
                let Some(noted) = slot.get().and_then(&stamp_of) else { continue };
                let path = listed.path.join(listed.name(listed.entries[entry]));
                asked += 1;
                if tree.stamp(&path) != Some(noted) {
                    forget_all(table);
                    let (version, listed) = (slot.version(), listed.clone());
                    self.suspect = Some(Suspect { directory: at, listed, entry, version });
                    return true;
                }
            }
            if asked >= ASKED {
                break;
            }
        }
        false
    }
}
