//! When to stop looking.

use std::time::Instant;

/// Asked by every loop whether it may go on: somebody took the question back, or time is over.
pub struct Deadline<'a> {
    until: Instant,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Deadline<'a> {
    /// Stops at a moment, or when `cancelled` says so.
    pub fn new(until: Instant, cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Deadline { until, cancelled }
    }

    /// The same, but not later than another moment.
    #[must_use]
    pub fn not_after(&self, moment: Instant) -> Deadline<'a> {
        Deadline { until: self.until.min(moment), cancelled: self.cancelled }
    }

    /// Whether to stop.
    pub fn now(&self) -> bool {
        (self.cancelled)() || Instant::now() >= self.until
    }
}
