//! A question of this process in the store, as its call sees it. Nothing here waits for the network for longer than a moment.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::approval_rows::{ApprovalAnswer, NewApproval, shown_id};

/// How a question is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// It was not asked yet.
    Unknown,
    /// It waits for its answer, with this id.
    Open(String),
    /// It has an answer that this call can use.
    Answered,
    /// The same call on another machine has used the answer.
    UsedElsewhere,
    /// It was not answered in time.
    Expired,
    /// It cannot be asked there now, for this reason.
    Unavailable(String),
}

/// The store's result for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// This answer settled the question; or the store does not have the question any more.
    Own,
    /// This answer was first. The call uses it.
    Other(ApprovalAnswer),
    /// There is an answer, and the same call on another machine has used it.
    UsedElsewhere,
    /// There is no answer that can be used.
    Expired,
    /// The store cannot be asked now.
    Unreachable,
}

/// A question of this process.
pub(crate) struct AskedEntry {
    pub(crate) new: NewApproval,
    /// This call, to the store.
    pub(crate) call: String,
    /// No answer can be used after this time.
    pub(crate) until: Instant,
    state: Mutex<EntryState>,
    changed: Condvar,
}

struct EntryState {
    id: Option<i64>,
    state: ApprovalState,
    /// Whether a call waits for the answer.
    is_followed: bool,
}

impl AskedEntry {
    pub(crate) fn new(new: NewApproval, call: String) -> AskedEntry {
        let until = Instant::now() + Duration::from_secs(new.seconds);
        let state = EntryState { id: None, state: ApprovalState::Unknown, is_followed: true };
        AskedEntry { new, call, until, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn id(&self) -> Option<i64> {
        self.state.lock().id
    }

    /// No call waits for the answer any more.
    pub(crate) fn stop_following(&self) {
        self.state.lock().is_followed = false;
    }

    pub(crate) fn state(&self) -> ApprovalState {
        self.state.lock().state.clone()
    }

    /// Whether the store is to be asked about it: a call waits for the answer, or it was not put there yet.
    pub(crate) fn can_change(&self) -> bool {
        let state = self.state.lock();
        match state.state {
            ApprovalState::Unknown => true,
            ApprovalState::UsedElsewhere | ApprovalState::Expired => false,
            _ => state.is_followed,
        }
    }

    /// It needs no answer any more. Returns whether the store may have it.
    pub(crate) fn withdraw(&self) -> bool {
        let mut state = self.state.lock();
        state.is_followed = false;
        if state.id.is_none() {
            state.state = ApprovalState::Expired;
        }
        state.id.is_some()
    }

    /// Waits until it is known how the question is in the store, at most for a time.
    pub(crate) fn wait_until_known(&self, most: Duration) -> ApprovalState {
        let until = Instant::now() + most;
        let mut state = self.state.lock();
        while state.state == ApprovalState::Unknown {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.state.clone()
    }

    /// The store has the question.
    pub(crate) fn asked(&self, id: i64, is_answered: bool) {
        let mut state = self.state.lock();
        state.id = Some(id);
        state.state = if is_answered {
            ApprovalState::Answered
        } else {
            ApprovalState::Open(shown_id(id, &self.new.digest))
        };
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn set_state(&self, new: ApprovalState) {
        self.state.lock().state = new;
        self.changed.notify_all();
    }

    /// The store has lost the question.
    pub(crate) fn forget_id(&self) {
        self.state.lock().id = None;
    }
}

/// Where the answer of the store to a request arrives.
#[derive(Default)]
pub(crate) struct OutcomeSlot {
    outcome: Mutex<Option<ApprovalOutcome>>,
    arrived: Condvar,
}

impl OutcomeSlot {
    /// Puts the outcome in, unless there is one. Returns whether there was none.
    pub(crate) fn fill(&self, outcome: ApprovalOutcome) -> bool {
        let mut slot = self.outcome.lock();
        if slot.is_some() {
            return false;
        }
        *slot = Some(outcome);
        self.arrived.notify_all();
        true
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.outcome.lock().is_some()
    }

    /// Waits for the outcome. Without one in time, the store is unreachable, and a later outcome is not used.
    pub(crate) fn wait(&self, most: Duration) -> ApprovalOutcome {
        let until = Instant::now() + most;
        let mut slot = self.outcome.lock();
        while slot.is_none() {
            if self.arrived.wait_until(&mut slot, until).timed_out() {
                break;
            }
        }
        slot.get_or_insert(ApprovalOutcome::Unreachable).clone()
    }
}
