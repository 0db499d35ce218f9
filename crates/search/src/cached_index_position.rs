//! The cached index position of a file in a watched directory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::index_position::IndexPosition;

/// An index position, or none, and a counter of invalidations. A reader takes the version before it stats the
/// file. If it was cleared since, the file may have changed, and the position is not stored.
#[derive(Debug, Default)]
pub(crate) struct CachedIndexPosition(AtomicU64);

/// How often a cached position was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachedPositionVersion(u64);

const POSITION_MASK: u64 = (1 << IndexPosition::BITS) - 1;

impl CachedIndexPosition {
    pub(crate) fn get(&self) -> Option<IndexPosition> {
        IndexPosition::unpacked(self.0.load(Ordering::SeqCst) & POSITION_MASK)
    }

    /// Must be read before the file is examined.
    pub(crate) fn version(&self) -> CachedPositionVersion {
        CachedPositionVersion(self.0.load(Ordering::SeqCst) >> IndexPosition::BITS)
    }

    /// Stores a position, unless it was cleared after `version`.
    pub(crate) fn put(&self, version: CachedPositionVersion, position: IndexPosition) {
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
    pub(crate) fn copied(&self) -> CachedIndexPosition {
        CachedIndexPosition(AtomicU64::new(self.0.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_not_stored_after_the_cache_was_cleared() {
        let (cache, position) =
            (CachedIndexPosition::default(), IndexPosition::unpacked(0x1_4003).unwrap());
        let before = cache.version();
        cache.put(before, position);
        assert_eq!((cache.get(), cache.copied().get()), (Some(position), Some(position)));
        cache.clear();
        cache.put(before, position);
        assert_eq!(cache.get(), None);
        cache.put(cache.version(), position);
        assert_eq!(cache.get(), Some(position));
    }
}
