//! How a worker fails.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// Why there is no answer.
#[derive(Debug)]
pub enum WorkerError {
    /// The program could not be started, or not be limited.
    NotStarted(io::Error),
    /// It took longer than it may: by the clock, or of the processor.
    TimedOut,
    /// It wanted more memory than it may have.
    OutOfMemory,
    /// It answered with more than it may.
    TooMuchOutput,
    /// The caller did not want to know any more.
    Cancelled,
    /// A signal ended it: a fault, or somebody else.
    Killed {
        /// Which.
        signal: i32,
    },
    /// It gave up by itself.
    Failed {
        /// Its exit code.
        code: i32,
        /// What it said on stderr, at most 4 KiB of it.
        message: String,
    },
    /// The system lost it on us: its pipes or its end.
    Lost(io::Error),
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerError::NotStarted(error) => write!(f, "the worker cannot be started: {error}"),
            WorkerError::TimedOut => f.write_str("the worker took too long"),
            WorkerError::OutOfMemory => f.write_str("the worker needed too much memory"),
            WorkerError::TooMuchOutput => f.write_str("the worker's answer is too long"),
            WorkerError::Cancelled => f.write_str("cancelled"),
            WorkerError::Killed { signal } => write!(f, "the worker was ended by signal {signal}"),
            WorkerError::Failed { code, message } if message.is_empty() => {
                write!(f, "the worker failed with code {code}")
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

/// What an ending means, if it was not a good one.
pub(super) fn of_ending(status: ExitStatus, complaint: &[u8]) -> Option<WorkerError> {
    let message = String::from_utf8_lossy(complaint).trim().to_owned();
    if let Some(signal) = status.signal() {
        // What Rust says before it aborts; the kernel only knows that it aborted.
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
