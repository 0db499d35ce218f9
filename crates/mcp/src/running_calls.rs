//! The calls of a client that run, so that all of them can be told to end.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolcrib::Cancel;

#[derive(Debug, Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    running: HashMap<u64, Arc<Cancel>>,
    /// Whether every call is to end, also one that begins later.
    is_over: bool,
}

impl Calls {
    pub(crate) fn add(&self, cancel: Arc<Cancel>) -> Listed<'_> {
        let mut state = self.lock();
        if state.is_over {
            cancel.cancel();
        }
        state.last += 1;
        let id = state.last;
        state.running.insert(id, cancel);
        Listed { calls: self, id }
    }

    /// Tells every call to end.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.running.values().for_each(|cancel| cancel.cancel());
    }

    /// Waits until none is left, but not for longer.
    pub(crate) fn wait(&self, longest: Duration) {
        // What a call did not do by then it does not do.
        let _ =
            self.ended.wait_timeout_while(self.lock(), longest, |state| !state.running.is_empty());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call is listed as long as this lives.
pub(crate) struct Listed<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.calls.lock().running.remove(&self.id);
        self.calls.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_for_calls_that_run_and_for_those_that_come() {
        let calls = Calls::default();
        let (early, late) = (Arc::new(Cancel::new()), Arc::new(Cancel::new()));
        let listed = calls.add(early.clone());
        assert!(!early.is_cancelled());
        calls.end();
        assert!(early.is_cancelled());
        drop(listed);
        drop(calls.add(late.clone()));
        assert!(late.is_cancelled());
        calls.wait(Duration::MAX);
    }
}
