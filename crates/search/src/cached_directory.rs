//! What the listing cache knows about one directory.

use crate::cached_doc_id::CachedDocId;
use crate::cached_mtimes::CachedMtimes;
use crate::listing_freshness::WatchState;

/// Knowledge about a listed directory and its files. Empty in a listing that is not cached.
#[derive(Debug, Default)]
pub(crate) struct CachedDirectory {
    /// Whether the directory is watched.
    pub(crate) watch: WatchState,
    /// The id of each entry in the index. Valid only while the directory is watched.
    pub(crate) doc_ids: Vec<CachedDocId>,
    pub(crate) mtimes: CachedMtimes,
}
