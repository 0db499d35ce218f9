//! What is known of a file whose directory is watched: where it is in the index.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::IndexPosition;

/// A place, or none, and how often it was forgotten. Who finds out a place says what it knew before; if it
/// was forgotten since, something has happened to the file, and what was found out is not noted.
#[derive(Debug, Default)]
pub(crate) struct Slot(AtomicU64);

/// How often a slot was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

const PLACE: u64 = (1 << IndexPosition::BITS) - 1;

impl Slot {
    pub(crate) fn get(&self) -> Option<IndexPosition> {
        IndexPosition::unpacked(self.0.load(Ordering::SeqCst) & PLACE)
    }

    /// To be asked before anything else is.
    pub(crate) fn version(&self) -> Version {
        Version(self.0.load(Ordering::SeqCst) >> IndexPosition::BITS)
    }

    /// Notes a place, unless it was forgotten since.
    pub(crate) fn put(&self, version: Version, place: IndexPosition) {
        let now = self.0.load(Ordering::SeqCst);
        let Some(packed) = place.packed() else { return };
        if now >> IndexPosition::BITS == version.0 {
            let new = version.0 << IndexPosition::BITS | packed;
            let _ = self.0.compare_exchange(now, new, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    pub(crate) fn forget(&self) {
        let forgotten = |now: u64| Some(((now >> IndexPosition::BITS) + 1) << IndexPosition::BITS);
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forgotten);
    }

    /// The same, for a new listing of the directory.
    pub(crate) fn carried(&self) -> Slot {
        Slot(AtomicU64::new(self.0.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_since_is_not_noted() {
        let (slot, place) = (Slot::default(), IndexPosition::unpacked(0x1_4003).unwrap());
        let before = slot.version();
        slot.put(before, place);
        assert_eq!((slot.get(), slot.carried().get()), (Some(place), Some(place)));
        slot.forget();
        slot.put(before, place);
        assert_eq!(slot.get(), None);
        slot.put(slot.version(), place);
        assert_eq!(slot.get(), Some(place));
    }
}
