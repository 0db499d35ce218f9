//! What can go wrong with a command that is not the command's own failure.

use std::fmt;
use std::io;

/// Trouble of ours, not of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// There are as many jobs as there may be, and all of them run.
    TooMany(usize),
    /// The keeper could not be started, or not be told.
    NotLaunched {
        /// The system's number for why.
        errno: i32,
    },
    /// The keeper could not prepare the command.
    NotPrepared {
        /// What it was about to do.
        step: String,
        /// On what; may be empty.
        what: String,
        /// The system's number for why; zero, if `what` says it.
        errno: i32,
    },
    /// Nothing on this system confines a command.
    NotConfinable,
    /// The keeper is gone, without a last word.
    KeeperLost,
    /// The keeper says nothing.
    KeeperSilent,
}

impl JobError {
    pub(crate) fn not_launched(error: &io::Error) -> JobError {
        JobError::NotLaunched { errno: error.raw_os_error().unwrap_or(0) }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::TooMany(count) => write!(f, "{count} commands are running already"),
            JobError::NotLaunched { errno } => {
                write!(f, "the process that keeps a command could not be started: {}", why(*errno))
            }
            // In somebody else's words, who says why.
            JobError::NotPrepared { step, what, errno: 0 } => write!(f, "could not {step}: {what}"),
            JobError::NotPrepared { step, what, errno } if what.is_empty() => {
                write!(f, "could not {step}: {}", why(*errno))
            }
            JobError::NotPrepared { step, what, errno } => {
                write!(f, "could not {step} {what}: {}", why(*errno))
            }
            JobError::NotConfinable => {
                write!(f, "nothing on this system confines a command")
            }
            JobError::KeeperLost => {
                write!(
                    f,
                    "the process that kept the command was killed, and how the command ended is not known"
                )
            }
            JobError::KeeperSilent => {
                write!(f, "the process that keeps the command does not answer")
            }
        }
    }
}

impl std::error::Error for JobError {}

fn why(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
