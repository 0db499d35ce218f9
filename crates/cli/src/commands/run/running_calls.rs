//! Calls without a reply yet, so that a line can cancel them.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib::Cancel;

use super::request::Request;

/// Calls by id. Several calls may have the same id.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<Vec<(Value, Arc<Cancel>)>>);

impl RunningCalls {
    pub(super) fn add(&self, request: &Request) {
        self.0.lock().push((request.id.clone(), request.cancel.clone()));
    }

    pub(super) fn remove(&self, request: &Request) {
        self.0.lock().retain(|(_, cancel)| !Arc::ptr_eq(cancel, &request.cancel));
    }

    /// Cancels the calls with an id. Returns whether there were any.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let running = self.0.lock();
        let mut named = running.iter().filter(|(other, _)| other == id).peekable();
        let is_any = named.peek().is_some();
        named.for_each(|(_, cancel)| cancel.cancel());
        is_any
    }
}
