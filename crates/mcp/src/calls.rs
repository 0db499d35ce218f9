//! The calls that run, so that all of them can be told to end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolcrib::Cancel;

#[derive(Clone, Default)]
pub(crate) struct Calls {
    running: Arc<Mutex<HashMap<u64, Arc<Cancel>>>>,
    ended: Arc<Condvar>,
    last: Arc<AtomicU64>,
}

impl Calls {
    pub(crate) fn add(&self, cancel: Arc<Cancel>) -> Listed<'_> {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(id, cancel);
        Listed { calls: self, id }
    }

    /// Tells every call to end.
    pub(crate) fn cancel_all(&self) {
        self.lock().values().for_each(|cancel| cancel.cancel());
    }

    /// Waits until none is left, but not for longer.
    pub(crate) fn wait(&self, longest: Duration) {
        // What a call did not do by then it does not do.
        let _ = self.ended.wait_timeout_while(self.lock(), longest, |calls| !calls.is_empty());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Cancel>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call is listed as long as this lives.
pub(crate) struct Listed<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
        self.calls.ended.notify_all();
    }
}
