//! A check of one edited file by one server, and its result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use toolcrib_exec::{Command, Guard, Sandbox};

use super::project_files::ProjectFiles;

/// A file to check.
pub(crate) struct Check {
    pub(crate) path: PathBuf,
    pub(crate) language: String,
    /// The text before the edit. `None` if the file is new.
    pub(crate) was: Option<Arc<str>>,
    pub(crate) now: Arc<str>,
    /// The files of the project after the edit.
    pub(crate) project: Arc<ProjectFiles>,
    pub(crate) launch: Launch,
    pub(crate) result: Arc<CheckResult>,
}

/// How a server is started.
pub(crate) struct Launch {
    pub(crate) command: Command,
    pub(crate) sandbox: Sandbox,
    pub(crate) guard: Arc<dyn Guard>,
}

/// An error that an edit introduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundError {
    /// From 1.
    pub(crate) line: u64,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
}

/// What a server said about an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// The new errors.
    Errors(Vec<FoundError>),
    /// There are too many errors to know which are new.
    TooMany,
    /// It did not answer in time.
    Unanswered,
    /// The server failed, and is not started again. The sentence says why.
    Failed(String),
}

/// The result of a check, once it is known.
#[derive(Debug, Default)]
pub(crate) struct CheckResult {
    outcome: Mutex<Option<CheckOutcome>>,
    known: Condvar,
}

impl CheckResult {
    pub(crate) fn set(&self, outcome: CheckOutcome) {
        self.outcome.lock().get_or_insert(outcome);
        self.known.notify_all();
    }

    pub(crate) fn get(&self) -> Option<CheckOutcome> {
        self.outcome.lock().clone()
    }

    /// Waits until the result is known, or until a moment.
    pub(crate) fn wait_until(&self, moment: Instant) {
        let mut outcome = self.outcome.lock();
        if outcome.is_none() {
            self.known.wait_until(&mut outcome, moment);
        }
    }
}
