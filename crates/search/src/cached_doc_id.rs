//! The cached id of a file in a watched directory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::doc_id::DocId;

/// The id of a file in the index, or none, and a counter of invalidations. A reader takes the version before it
/// stats the file. If it was cleared since, the file may have changed, and the id is not stored.
#[derive(Debug, Default)]
pub(crate) struct CachedDocId(AtomicU64);

/// How often a cached id was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachedDocIdVersion(u64);

const DOC_ID_MASK: u64 = (1 << DocId::BITS) - 1;

impl CachedDocId {
    pub(crate) fn get(&self) -> Option<DocId> {
        DocId::unpacked(self.0.load(Ordering::SeqCst) & DOC_ID_MASK)
    }

    /// Must be read before the file is examined.
    pub(crate) fn version(&self) -> CachedDocIdVersion {
        CachedDocIdVersion(self.0.load(Ordering::SeqCst) >> DocId::BITS)
    }

    /// Stores an id, unless it was cleared after `version`.
    pub(crate) fn put(&self, version: CachedDocIdVersion, id: DocId) {
        let now = self.0.load(Ordering::SeqCst);
        let Some(packed) = id.packed() else { return };
        if now >> DocId::BITS == version.0 {
            let new = version.0 << DocId::BITS | packed;
            let _ = self.0.compare_exchange(now, new, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    pub(crate) fn clear(&self) {
        let forgotten = |now: u64| Some(((now >> DocId::BITS) + 1) << DocId::BITS);
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forgotten);
    }

    /// A copy, for a new listing of the directory.
    pub(crate) fn copied(&self) -> CachedDocId {
        CachedDocId(AtomicU64::new(self.0.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_stored_after_the_cache_was_cleared() {
        let (cache, id) = (CachedDocId::default(), DocId::unpacked(0x1_4003).unwrap());
        let before = cache.version();
        cache.put(before, id);
        assert_eq!((cache.get(), cache.copied().get()), (Some(id), Some(id)));
        cache.clear();
        cache.put(before, id);
        assert_eq!(cache.get(), None);
        cache.put(cache.version(), id);
        assert_eq!(cache.get(), Some(id));
    }
}
