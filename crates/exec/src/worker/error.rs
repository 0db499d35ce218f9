//! Errors of workers.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// Why a worker gave no answer.
#[derive(Debug)]
pub enum WorkerError {
    /// The program could not be started, or its limits could not be set.
    NotStarted(io::Error),
    /// It exceeded its limit on wall-clock or CPU time.
    TimedOut,
    /// It exceeded its memory limit.
    OutOfMemory,
    /// Its answer exceeded the limit.
    TooMuchOutput,
    /// The caller cancelled it.
    Cancelled,
    /// A signal ended it: a fault, or a signal of another process.
    Killed {
        /// The signal.
        signal: i32,
    },
    /// It reported an error.
    Failed {
        /// Its exit code.
        code: i32,
        /// Its stderr, at most 4 KiB.
        message: String,
    },
    /// Waiting for it, or reading its pipes, failed.
    Lost(io::Error),
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerError::NotStarted(error) => write!(f, "the worker could not be started: {error}"),
            WorkerError::TimedOut => f.write_str("the worker took too long"),
            WorkerError::OutOfMemory => f.write_str("the worker needed too much memory"),
            WorkerError::TooMuchOutput => f.write_str("the worker's output is too long"),
            WorkerError::Cancelled => f.write_str("cancelled"),
            WorkerError::Killed { signal } => write!(f, "the worker was killed by signal {signal}"),
            WorkerError::Failed { code, message } if message.is_empty() => {
                write!(f, "the worker failed with exit code {code}")
            }
            WorkerError::Failed { message, .. } => f.write_str(message),
            WorkerError::Lost(error) => write!(f, "the worker was lost: {error}"),
        }
    }
}

impl std::error::Error for WorkerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WorkerError::NotStarted(error) | WorkerError::Lost(error) => Some(error),
            _ => None,
        }
    }
}

/// The error for an exit status. `None` for success.
pub(super) fn from_exit_status(status: ExitStatus, stderr: &[u8]) -> Option<WorkerError> {
    let message = String::from_utf8_lossy(stderr).trim().to_owned();
    if let Some(signal) = status.signal() {
        // Rust prints this before it aborts. The exit status only says that it aborted.
        let allocation_failed = message.contains("memory allocation of ");
        return Some(match Signal::from_named_raw(signal) {
            Some(Signal::ABORT) if allocation_failed => WorkerError::OutOfMemory,
            Some(Signal::XCPU) => WorkerError::TimedOut,
            _ => WorkerError::Killed { signal },
        });
    }
    match status.code() {
        Some(0) => None,
        code => Some(WorkerError::Failed { code: code.unwrap_or(-1), message }),
    }
}
