//! The known index position of a file in a watched directory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::IndexPosition;

/// An index position, or none, and a counter of invalidations. A reader takes the version before it stats the
/// file. If the slot was cleared since, the file may have changed, and the position is not stored.
#[derive(Debug, Default)]
pub(crate) struct Slot(AtomicU64);

/// How often a slot was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

const PLACE: u64 = (1 << IndexPosition::BITS) - 1;

impl Slot {
    pub(crate) fn get(&self) -> Option<IndexPosition> {
        IndexPosition::unpacked(self.0.load(Ordering::SeqCst) & PLACE)
    }

    /// Must be read before the file is examined.
    pub(crate) fn version(&self) -> Version {
        Version(self.0.load(Ordering::SeqCst) >> IndexPosition::BITS)
    }

    /// Stores a position, unless the slot was cleared after `version`.
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

    /// A copy, for a new listing of the directory.
    pub(crate) fn carried(&self) -> Slot {
        Slot(AtomicU64::new(self.0.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_not_stored_after_the_slot_was_cleared() {
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
