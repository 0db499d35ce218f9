//! A question that exactly one answer settles.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib::now_ms;

use crate::protocol::{AnswerWord, Answerer, Question, Settled, TimeLeft};
use crate::shared_questions::{SharedEntry, SharedOutcome, SharedState};
use crate::shorten::json_bytes;

/// A question, open or settled.
pub(crate) struct OpenQuestion {
    question: Question,
    /// Size of the question as JSON.
    bytes: usize,
    /// Held while an answer stores its rule, which can take seconds. Only other answers wait for it.
    settling: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    settled: Option<Settled>,
    /// The call that asks it now, if it is not the one that opened it.
    call: Option<String>,
    /// The fields of the question about its time limits.
    time_left: TimeLeft,
    /// Called when the question is settled.
    listeners: Vec<Box<dyn FnOnce() + Send>>,
    /// The same question where other machines can answer it.
    shared: Option<Arc<dyn SharedEntry>>,
    /// Whether a call waits for the answer.
    has_call: bool,
}

/// The message of a question whose answer another machine has used.
const USED_ELSEWHERE: &str = "It was answered for the same call on another machine, which has used the answer. Repeat the call to ask again.";

/// Why an answer did not settle a question.
#[derive(Debug)]
pub enum SettleError<E> {
    /// Another answer was first.
    Before(Settled),
    /// The rule of the answer could not be stored. The question is still open.
    Rule(E),
}

impl fmt::Debug for OpenQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenQuestion").field("id", &self.question.id).finish_non_exhaustive()
    }
}

impl OpenQuestion {
    pub(crate) fn new(question: Question) -> OpenQuestion {
        OpenQuestion {
            bytes: json_bytes(&question),
            question,
            settling: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The question, without its time limits.
    pub(crate) fn question(&self) -> &Question {
        &self.question
    }

    /// The question with its current time limits.
    pub(crate) fn shown(&self) -> Question {
        let state = self.state.lock();
        let call = state.call.clone().unwrap_or_else(|| self.question.call.clone());
        Question { call, time_left: state.time_left.clone(), ..self.question.clone() }
    }

    /// The call that asks it now.
    pub(crate) fn call(&self) -> String {
        self.state.lock().call.clone().unwrap_or_else(|| self.question.call.clone())
    }

    /// Another call asks the same.
    pub(crate) fn set_call(&self, call: String) {
        self.state.lock().call = Some(call);
    }

    /// Changes the time limits. Returns whether they differ from the previous ones.
    pub(crate) fn set_time_left(&self, time_left: TimeLeft) -> bool {
        let before = std::mem::replace(&mut self.state.lock().time_left, time_left.clone());
        before != time_left
    }

    /// Makes a thread that waits check whether it goes on.
    pub(crate) fn wake(&self) {
        // A thread that has checked and does not wait yet holds the lock.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// Size of the question as JSON.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How it was settled, if it was. Does not wait for an answer that stores its rule.
    pub(crate) fn settled(&self) -> Option<Settled> {
        self.state.lock().settled.clone()
    }

    /// Settles it, unless it is settled. `store` stores the rule of the answer, and only of the answer that wins. Returns the
    /// answer that has settled it, which may be one that was given on another machine.
    pub(crate) fn settle<E>(
        &self,
        settled: Settled,
        store: impl FnOnce() -> Result<(), E>,
    ) -> Result<Settled, SettleError<E>> {
        let settling = self.settling.lock();
        if let Some(before) = self.settled() {
            return Err(SettleError::Before(before));
        }
        let settled = match self.settle_elsewhere(&settled) {
            Some(other) => other,
            None => {
                store().map_err(SettleError::Rule)?;
                settled
            }
        };
        self.set_settled(&settled);
        drop(settling);
        Ok(settled)
    }

    /// Settles it by its answer on another machine, if there is one for its call.
    pub(crate) fn settle_by_shared(&self) -> Option<Settled> {
        let shared = self.shared()?;
        if !matches!(shared.state(), SharedState::Answered | SharedState::UsedElsewhere) {
            return None;
        }
        let settling = self.settling.lock();
        if self.settled().is_some() {
            return None;
        }
        let settled = match shared.take() {
            SharedOutcome::Other(settled) => settled,
            SharedOutcome::UsedElsewhere => used_elsewhere(),
            SharedOutcome::Own | SharedOutcome::Expired | SharedOutcome::Unreachable => {
                return None;
            }
        };
        self.set_settled(&settled);
        drop(settling);
        Some(settled)
    }

    /// Tells the other machines an answer. Returns the one that was first, if it is another.
    fn settle_elsewhere(&self, settled: &Settled) -> Option<Settled> {
        let (shared, has_call) = {
            let state = self.state.lock();
            (state.shared.clone()?, state.has_call)
        };
        match settled.by {
            Answerer::Withdrawn => {
                shared.withdraw();
                None
            }
            // The same call may be made again, on another machine: the question stays there.
            Answerer::Timeout | Answerer::Cancelled | Answerer::Store => None,
            _ => match shared.settle(settled, has_call) {
                SharedOutcome::Other(other) => Some(other),
                SharedOutcome::UsedElsewhere => Some(used_elsewhere()),
                SharedOutcome::Own | SharedOutcome::Expired | SharedOutcome::Unreachable => None,
            },
        }
    }

    /// Other machines can answer it, too, from now on. A call waits for the answer.
    pub(crate) fn share(&self, shared: Arc<dyn SharedEntry>) {
        let mut state = self.state.lock();
        (state.shared, state.has_call) = (Some(shared), true);
    }

    /// The same question on other machines. `None` if it is only here.
    pub(crate) fn shared(&self) -> Option<Arc<dyn SharedEntry>> {
        self.state.lock().shared.clone()
    }

    /// How it is on other machines. `None` if it is only here.
    pub(crate) fn shared_state(&self) -> Option<SharedState> {
        self.shared().map(|shared| shared.state())
    }

    /// The same, once it is known. Waits at most for a time.
    pub(crate) fn known_shared_state(&self, most: Duration) -> Option<SharedState> {
        self.shared().map(|shared| shared.wait_until_known(most))
    }

    /// Whether a new call may use the answer that was given after an earlier one had ended: not if another machine has used it.
    pub(crate) fn take_left_answer(&self) -> bool {
        self.shared().is_none_or(|shared| {
            !matches!(shared.take(), SharedOutcome::UsedElsewhere | SharedOutcome::Expired)
        })
    }

    /// The call has not used the answer, since it was cancelled.
    pub(crate) fn give_back_answer(&self) {
        self.shared().inspect(|shared| shared.give_back());
    }

    /// Its call has ended, and the question stays.
    pub(crate) fn leave_shared(&self) {
        let shared = {
            let mut state = self.state.lock();
            state.has_call = false;
            state.shared.clone()
        };
        shared.inspect(|shared| shared.leave());
    }

    /// Its call has the answer.
    pub(crate) fn end_sharing(&self) {
        let shared = self.state.lock().shared.take();
        drop(shared);
    }

    /// Keeps the answer, and tells those who wait.
    fn set_settled(&self, settled: &Settled) {
        let mut state = self.state.lock();
        state.settled = Some(settled.clone());
        let listeners = std::mem::take(&mut state.listeners);
        drop(state);
        self.changed.notify_all();
        listeners.into_iter().for_each(|listener| listener());
    }

    /// Calls a function when the question is settled, or at once if it is.
    pub(crate) fn on_settled(&self, listener: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        if state.settled.is_none() {
            state.listeners.push(Box::new(listener));
            return;
        }
        drop(state);
        listener();
    }

    /// Waits until it is settled, at most until this time and as long as `goes_on`, which is checked every `interval`.
    pub(crate) fn wait(
        &self,
        until: Instant,
        interval: Duration,
        goes_on: impl Fn() -> bool,
    ) -> Option<Settled> {
        let mut state = self.state.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.settled.is_some() || left.is_zero() || !goes_on() {
                return state.settled.clone();
            }
            self.changed.wait_for(&mut state, left.min(interval));
        }
    }
}

/// The answer to a call whose question was answered for the same call on another machine.
fn used_elsewhere() -> Settled {
    let message = Some(USED_ELSEWHERE.to_owned());
    Settled { answer: AnswerWord::No, minutes: None, by: Answerer::Store, at: now_ms(), message }
}
