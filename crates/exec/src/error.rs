//! Errors in running a command, other than a failure of the command itself.

use std::fmt;
use std::io;

use crate::setup_error::SetupError;

/// A command could not be started, or its outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// The session has its maximum number of jobs, and all of them are running.
    TooMany(usize),
    /// All sessions together have their maximum number of running jobs.
    TooManyInAll(usize),
    /// The shim could not be started, or its request could not be sent.
    NotLaunched {
        /// The errno.
        errno: i32,
    },
    /// The shim could not prepare the command.
    NotPrepared {
        /// The step that failed.
        step: String,
        /// The object of the step, such as a path. May be empty.
        what: String,
        /// The errno. Zero if `what` has the reason.
        errno: i32,
    },
    /// This system has no mechanism to confine a command.
    NotConfinable,
    /// The shim exited without reporting how the command ended.
    ShimLost,
    /// The shim did not report in time whether the shell runs.
    ShimUnresponsive,
}

impl JobError {
    pub(crate) fn not_launched(error: &io::Error) -> JobError {
        JobError::NotLaunched { errno: error.raw_os_error().unwrap_or(0) }
    }
}

impl From<SetupError> for JobError {
    fn from(SetupError { step, what, error }: SetupError) -> JobError {
        let errno = error.raw_os_error().unwrap_or(0);
        JobError::NotPrepared { step: step.to_owned(), what, errno }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::TooMany(count) => write!(f, "{count} commands are already running"),
            JobError::TooManyInAll(count) => {
                write!(f, "{count} commands of all sessions of this workspace are already running")
            }
            JobError::NotLaunched { errno } => {
                write!(
                    f,
                    "the shim process of the command could not be started: {}",
                    os_error(*errno)
                )
            }
            // `what` is the message of another program.
            JobError::NotPrepared { step, what, errno: 0 } => write!(f, "could not {step}: {what}"),
            JobError::NotPrepared { step, what, errno } if what.is_empty() => {
                write!(f, "could not {step}: {}", os_error(*errno))
            }
            JobError::NotPrepared { step, what, errno } => {
                write!(f, "could not {step} {what}: {}", os_error(*errno))
            }
            JobError::NotConfinable => {
                write!(f, "this system has no sandbox for commands")
            }
            JobError::ShimLost => {
                write!(
                    f,
                    "the shim process of the command was killed, so the exit status is unknown"
                )
            }
            JobError::ShimUnresponsive => {
                write!(f, "the shim process of the command does not respond")
            }
        }
    }
}

impl std::error::Error for JobError {}

fn os_error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
