//! A failed step of setting up a command: the step, its path and the cause.

use std::io;
use std::path::Path;

/// A step that failed.
#[derive(Debug)]
pub(crate) struct SetupError {
    pub(crate) step: &'static str,
    pub(crate) what: String,
    pub(crate) error: io::Error,
}

/// Adds the step and a path to an error.
pub(crate) fn path_context<T>(
    step: &'static str,
    what: &Path,
    outcome: Result<T, impl Into<io::Error>>,
) -> Result<T, SetupError> {
    outcome.map_err(|error| SetupError {
        step,
        what: what.display().to_string(),
        error: error.into(),
    })
}

/// Adds the step to an error.
pub(crate) fn context<T>(
    step: &'static str,
    outcome: Result<T, impl Into<io::Error>>,
) -> Result<T, SetupError> {
    path_context(step, Path::new(""), outcome)
}
