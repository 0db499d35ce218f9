//! Cancellation and progress of a call.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind};

/// Cancels a call. Tools check it in loops and waits. Share it with another thread by reference or in an `Arc`.
#[derive(Debug, Default)]
pub struct Cancel {
    asked: AtomicBool,
}

impl Cancel {
    /// Creates a flag that is not set.
    pub const fn new() -> Self {
        Cancel { asked: AtomicBool::new(false) }
    }

    /// Requests cancellation. The call returns an error of kind [`ErrorKind::Cancelled`] soon after.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Returns whether cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the caller cancelled the call"));
        }
        Ok(())
    }
}

/// Progress of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// Amount done. It never decreases during a call.
    pub done: u64,
    /// Total amount, if known.
    pub total: Option<u64>,
    /// Current activity.
    pub message: &'a str,
}
