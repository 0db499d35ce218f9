//! Calls without a reply yet, so that a line can cancel them.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib::Cancel;

/// Calls by id. Several calls may have the same id.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<Vec<(Value, Arc<Cancel>)>>);

impl RunningCalls {
    pub(super) fn add(&self, id: &Value, cancel: &Arc<Cancel>) {
        self.0.lock().push((id.clone(), cancel.clone()));
    }

    pub(super) fn remove(&self, cancel: &Arc<Cancel>) {
        self.0.lock().retain(|(_, other)| !Arc::ptr_eq(other, cancel));
    }

    /// Cancels the calls with an id. Returns whether there were any.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let running = self.0.lock();
        let mut named = running.iter().filter(|(other, _)| other == id).peekable();
        let is_any = named.peek().is_some();
        named.for_each(|(_, cancel)| cancel.cancel());
        is_any
    }

    /// Cancels all calls.
    pub(super) fn cancel_all(&self) {
        self.0.lock().iter().for_each(|(_, cancel)| cancel.cancel());
    }
}
