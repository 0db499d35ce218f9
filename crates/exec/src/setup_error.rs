//! A step of a preparation that failed: which, on what, and why.

use std::io;
use std::path::Path;

use crate::wire::ShimMessage;

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) step: &'static str,
    pub(crate) what: String,
    pub(crate) error: io::Error,
}

impl Failure {
    pub(crate) fn notice(self) -> ShimMessage {
        let errno = self.error.raw_os_error().unwrap_or(0);
        ShimMessage::NotStarted { step: self.step.to_owned(), what: self.what, errno }
    }
}

/// Marks an error with the step that it was made in, and with what it was about.
pub(crate) fn at<T>(
    step: &'static str,
    what: &Path,
    outcome: Result<T, impl Into<io::Error>>,
) -> Result<T, Failure> {
    outcome.map_err(|error| Failure { step, what: what.display().to_string(), error: error.into() })
}

/// Marks an error with the step that it was made in, where there is no more to say.
pub(crate) fn plainly<T>(
    step: &'static str,
    outcome: Result<T, impl Into<io::Error>>,
) -> Result<T, Failure> {
    at(step, Path::new(""), outcome)
}
