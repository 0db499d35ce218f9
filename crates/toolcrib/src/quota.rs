//! Limits on calls and commands that the host counts, perhaps over several machines.

use std::time::Duration;

use crate::call_command::CallCommand;
use crate::error::{Error, ErrorKind};

/// Counts calls and commands, and refuses those beyond a limit of the host. It must not wait: it is asked in each call.
pub trait Quota: Send + Sync {
    /// Whether there is a limit now. Without one, a transport does not look into a message before its call.
    fn is_limited(&self) -> bool;

    /// Succeeds if a call may begin now, without counting it. `runs_command` says whether the call declares a command.
    ///
    /// # Errors
    ///
    /// Fails if a limit is reached.
    fn check_call(&self, runs_command: &dyn Fn() -> bool) -> Result<(), OverQuota>;

    /// Counts a call that begins.
    ///
    /// # Errors
    ///
    /// Fails if a limit is reached. The call is not counted then.
    fn begin_call(&self) -> Result<(), OverQuota>;

    /// Succeeds if a command may start now. Asked before a user is asked about a call, too.
    ///
    /// # Errors
    ///
    /// Fails if a limit is reached.
    fn check_command(&self) -> Result<(), OverQuota>;

    /// Takes a place for a command that is about to start. Dropping the place gives it back.
    ///
    /// # Errors
    ///
    /// Fails if a limit is reached.
    fn begin_command(&self) -> Result<Box<dyn CommandPlace>, OverQuota>;
}

/// The place of a command that is about to start.
pub trait CommandPlace {
    /// The command has started, and has the place while one of its processes runs.
    fn started(self: Box<Self>, command: CallCommand);
}

/// A limit that is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverQuota {
    /// The name of the limit.
    pub limit: &'static str,
    /// A sentence without its period: which limit it is, and when it ends.
    pub message: String,
    /// The time after which another attempt is worthwhile.
    pub retry_after: Duration,
}

impl OverQuota {
    /// The time after which another attempt is worthwhile, in whole seconds.
    pub fn retry_seconds(&self) -> u64 {
        let part = u64::from(self.retry_after.subsec_nanos() > 0);
        self.retry_after.as_secs().saturating_add(part).max(1)
    }
}

impl From<OverQuota> for Error {
    fn from(over: OverQuota) -> Error {
        let seconds = over.retry_seconds();
        Error::new(ErrorKind::Limit, over.message).hint(format!(
            "The call was not run. Repeat it after {seconds} s, or tell the user; the operator sets the limit."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_is_in_whole_seconds() {
        for (milliseconds, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_999, 60)] {
            let retry_after = Duration::from_millis(milliseconds);
            let over = OverQuota { limit: "calls", message: String::new(), retry_after };
            assert_eq!(over.retry_seconds(), seconds);
        }
    }
}
