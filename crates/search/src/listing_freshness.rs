//! Whether the cached listing of a directory is known to be current.

use std::sync::atomic::{AtomicI64, Ordering};

use toolcrib_fs::Watch;

use crate::cached_doc_id::CachedDocId;

/// Whether a directory is watched, and whether its listing is known to be current.
#[derive(Debug, Default)]
pub(crate) struct WatchState(AtomicI64);

const UNTRIED: i64 = 0;
const UNWATCHABLE: i64 = 1;
/// Flags beside the watch descriptor.
const WATCHED: i64 = 2;
const CURRENT: i64 = 1;

impl WatchState {
    /// No watch was tried yet.
    pub(crate) fn is_untried(&self) -> bool {
        self.get() == UNTRIED
    }

    /// It is not current, and may be at the next call.
    pub(crate) fn may_become_current(&self) -> bool {
        self.get() != UNWATCHABLE && !self.is_current()
    }

    pub(crate) fn watch(&self) -> Option<Watch> {
        let state = self.get();
        (state & WATCHED != 0).then(|| Watch(i32::try_from(state >> 2).unwrap_or(i32::MAX)))
    }

    /// It is watched, and it was compared or listed since without an event.
    pub(crate) fn is_current(&self) -> bool {
        self.get() & (WATCHED | CURRENT) == WATCHED | CURRENT
    }

    pub(crate) fn set_watch(&self, watch: Watch) {
        self.0.store(i64::from(watch.0) << 2 | WATCHED, Ordering::SeqCst);
    }

    /// Marks it as not watchable.
    pub(crate) fn set_unwatchable(&self) {
        self.0.store(UNWATCHABLE, Ordering::SeqCst);
    }

    /// Marks it as compared or listed. Has no effect unless it is watched.
    pub(crate) fn set_current(&self) {
        if self.get() & WATCHED != 0 {
            self.0.fetch_or(CURRENT, Ordering::SeqCst);
        }
    }

    /// Resets the state. Results from before are not stored after this: see [`CachedDocId::version`].
    pub(crate) fn end_watch(&self, slots: &[CachedDocId]) -> Option<Watch> {
        let watch = self.watch();
        self.0.store(UNTRIED, Ordering::SeqCst);
        slots.iter().for_each(CachedDocId::clear);
        watch
    }

    /// Marks it as not current. The watch stays.
    pub(crate) fn invalidate(&self, slots: &[CachedDocId]) {
        if self.get() & WATCHED != 0 {
            self.0.fetch_and(!CURRENT, Ordering::SeqCst);
        }
        slots.iter().for_each(CachedDocId::clear);
    }

    /// A copy, for a new listing of the same directory.
    pub(crate) fn copied(&self) -> WatchState {
        WatchState(AtomicI64::new(self.get()))
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
