//! The cached modification times of the files of a directory.

use parking_lot::{Mutex, MutexGuard};

use crate::cached_doc_id::CachedDocIdVersion;

/// The mtimes of a directory's files, as far as they were requested.
#[derive(Debug, Default)]
pub(crate) struct CachedMtimes(Mutex<Vec<Option<CachedMtime>>>);

/// An mtime and the slot version from before it was read. It is invalid if the version has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedMtime {
    pub(crate) version: CachedDocIdVersion,
    pub(crate) modified: Mtime,
}

/// Seconds and nanoseconds since the epoch.
pub(crate) type Mtime = (i64, i64);

impl CachedMtimes {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Option<CachedMtime>>> {
        self.0.lock()
    }
}
