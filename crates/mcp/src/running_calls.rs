//! The running calls of a client, so that all of them can be cancelled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use toolcrib::Cancel;

#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    running: HashMap<u64, Arc<Cancel>>,
    /// Whether all calls are cancelled, including later ones.
    is_cancelled: bool,
}

impl RunningCalls {
    pub(crate) fn add(&self, cancel: Arc<Cancel>) -> CallRegistration<'_> {
        let mut state = self.state.lock();
        if state.is_cancelled {
            cancel.cancel();
        }
        state.last += 1;
        let id = state.last;
        state.running.insert(id, cancel);
        CallRegistration { calls: self, id }
    }

    /// Cancels all calls.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.is_cancelled = true;
        state.running.values().for_each(|cancel| cancel.cancel());
    }

    /// Waits until no call is running, at most for this time.
    pub(crate) fn wait(&self, longest: Duration) {
        // RunningCalls that are still running after that are abandoned.
        let is_busy = |state: &mut State| !state.running.is_empty();
        self.ended.wait_while_for(&mut self.state.lock(), is_busy, longest);
    }
}

/// Registers a running call until dropped.
pub(crate) struct CallRegistration<'a> {
    calls: &'a RunningCalls,
    id: u64,
}

impl Drop for CallRegistration<'_> {
    fn drop(&mut self) {
        self.calls.state.lock().running.remove(&self.id);
        self.calls.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_applies_to_running_and_later_calls() {
        let calls = RunningCalls::default();
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
