//! A question that exactly one answer settles.

use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::protocol::{Question, Settled, TimeLeft};
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
}

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

    /// Settles it, unless it is settled. `store` stores the rule of the answer, and only of the answer that wins.
    pub(crate) fn settle<E>(
        &self,
        settled: Settled,
        store: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), SettleError<E>> {
        let settling = self.settling.lock();
        if let Some(before) = self.settled() {
            return Err(SettleError::Before(before));
        }
        store().map_err(SettleError::Rule)?;
        let mut state = self.state.lock();
        state.settled = Some(settled);
        let listeners = std::mem::take(&mut state.listeners);
        drop(state);
        drop(settling);
        self.changed.notify_all();
        listeners.into_iter().for_each(|listener| listener());
        Ok(())
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
