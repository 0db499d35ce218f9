//! The order of a session's questions, and the changes that can make one unnecessary.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How often a question that waits for its turn checks whether it is still needed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The turns of a session's questions.
#[derive(Debug, Default)]
pub(crate) struct QuestionTurns {
    /// Whether a question has the turn.
    is_taken: Mutex<bool>,
    freed: Condvar,
    /// Number of answers that took effect and calls that ended.
    changes: AtomicU64,
}

/// The turn of a question, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn<'a> {
    turns: &'a QuestionTurns,
}

impl QuestionTurns {
    /// Waits until no other question has the turn. `None` once `goes_on` returns `false`.
    pub(crate) fn wait(&self, goes_on: impl Fn() -> bool) -> Option<Turn<'_>> {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            if !goes_on() {
                return None;
            }
            self.freed.wait_for(&mut is_taken, CHECK_INTERVAL);
        }
        *is_taken = true;
        Some(Turn { turns: self })
    }

    /// Records that open questions may be unnecessary now.
    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.turns.is_taken.lock() = false;
        self.turns.freed.notify_one();
    }
}
