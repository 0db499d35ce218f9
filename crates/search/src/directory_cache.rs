//! What the listing cache knows about one directory.

use crate::cached_index_position::CachedIndexPosition;
use crate::cached_mtimes::CachedMtimes;
use crate::listing_freshness::WatchState;

/// Knowledge about a listed directory and its files. Empty in a listing that is not cached.
#[derive(Debug, Default)]
pub(crate) struct DirectoryCache {
    /// Whether the directory is watched.
    pub(crate) watch: WatchState,
    /// The index position of each entry. Valid only while the directory is watched.
    pub(crate) positions: Vec<CachedIndexPosition>,
    pub(crate) mtimes: CachedMtimes,
}
