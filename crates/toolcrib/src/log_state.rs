//! Whether a log works, so that one reply says when it begins to fail.

use parking_lot::Mutex;

/// The state of a log.
#[derive(Debug, Default)]
pub(crate) struct LogState(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Works,
    /// The reason; no reply has reported it yet.
    Fails(String),
    /// A reply has reported the failure.
    FailsAndTold,
}

impl LogState {
    /// The outcome of writing a record.
    pub(crate) fn note(&self, outcome: Result<(), String>) {
        let mut state = self.0.lock();
        match (outcome, &*state) {
            (Ok(()), _) => *state = State::Works,
            (Err(why), State::Works) => *state = State::Fails(why),
            (Err(_), _) => {}
        }
    }

    /// The reason of a failure that no reply has reported yet.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        let mut state = self.0.lock();
        let State::Fails(why) = &mut *state else { return None };
        let why = std::mem::take(why);
        *state = State::FailsAndTold;
        Some(why)
    }
}
