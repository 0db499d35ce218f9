//! The known index position of a file in a watched directory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::IndexPosition;

/// An index position, or none, and a counter of invalidations. A reader takes the version before it stats the
/// file. If the slot was cleared since, the file may have changed, and the position is not stored.
#[derive(Debug, Default)]
pub(crate) struct IndexSlot(AtomicU64);

/// How often a slot was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotVersion(u64);

const POSITION_MASK: u64 = (1 << IndexPosition::BITS) - 1;

impl IndexSlot {
    pub(crate) fn get(&self) -> Option<IndexPosition> {
        IndexPosition::unpacked(self.0.load(Ordering::SeqCst) & POSITION_MASK)
    }

    /// Must be read before the file is examined.
    pub(crate) fn version(&self) -> SlotVersion {
        SlotVersion(self.0.load(Ordering::SeqCst) >> IndexPosition::BITS)
    }

    /// Stores a position, unless the slot was cleared after `version`.
    pub(crate) fn put(&self, version: SlotVersion, position: IndexPosition) {
        let now = self.0.load(Ordering::SeqCst);
        let Some(packed) = position.packed() else { return };
        if now >> IndexPosition::BITS == version.0 {
            let new = version.0 << IndexPosition::BITS | packed;
            let _ = self.0.compare_exchange(now, new, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    pub(crate) fn clear(&self) {
        let forgotten = |now: u64| Some(((now >> IndexPosition::BITS) + 1) << IndexPosition::BITS);
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forgotten);
    }

    /// A copy, for a new listing of the directory.
    pub(crate) fn copied(&self) -> IndexSlot {
        IndexSlot(AtomicU64::new(self.0.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_not_stored_after_the_slot_was_cleared() {
        let (slot, position) = (IndexSlot::default(), IndexPosition::unpacked(0x1_4003).unwrap());
        let before = slot.version();
        slot.put(before, position);
        assert_eq!((slot.get(), slot.copied().get()), (Some(position), Some(position)));
        slot.clear();
        slot.put(before, position);
        assert_eq!(slot.get(), None);
        slot.put(slot.version(), position);
        assert_eq!(slot.get(), Some(position));
    }
}
