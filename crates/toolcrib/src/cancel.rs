//! Stopping a call, and hearing how far it is.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind};

/// A flag that ends a call. Tools look at it wherever they loop or wait.
#[derive(Debug, Default)]
pub struct Cancel {
    asked: AtomicBool,
}

impl Cancel {
    /// A flag that nobody has raised.
    pub const fn new() -> Self {
        Cancel { asked: AtomicBool::new(false) }
    }

    /// Asks the call to end.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the call is to end.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled by its caller"));
        }
        Ok(())
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// How much is done; never falls during a call.
    pub done: u64,
    /// Of how much, if that is known.
    pub total: Option<u64>,
    /// What is being done.
    pub message: &'a str,
}
