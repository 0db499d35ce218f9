//! The calls that were taken in and have no reply yet, so that a line can cancel one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use toolcrib::Cancel;

use super::request::Request;

/// The calls by id. Several may have the same.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<Vec<(Value, Arc<Cancel>)>>);

impl RunningCalls {
    pub(super) fn add(&self, request: &Request) {
        self.lock().push((request.id.clone(), request.cancel.clone()));
    }

    pub(super) fn remove(&self, request: &Request) {
        self.lock().retain(|(_, cancel)| !Arc::ptr_eq(cancel, &request.cancel));
    }

    /// Cancels the calls of an id; answers whether there is one.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let running = self.lock();
        let mut named = running.iter().filter(|(other, _)| other == id).peekable();
        let is_any = named.peek().is_some();
        named.for_each(|(_, cancel)| cancel.cancel());
        is_any
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Value, Arc<Cancel>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
