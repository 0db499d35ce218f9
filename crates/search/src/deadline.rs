//! When to stop a search.

use std::time::Instant;

/// A time limit combined with cancellation. Every long loop checks it.
pub struct Deadline<'a> {
    until: Instant,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Deadline<'a> {
    /// Ends at `until`, or as soon as `cancelled` returns true.
    pub fn new(until: Instant, cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Deadline { until, cancelled }
    }

    /// A copy that ends no later than `moment`.
    #[must_use]
    pub fn not_after(&self, moment: Instant) -> Deadline<'a> {
        Deadline { until: self.until.min(moment), cancelled: self.cancelled }
    }

    /// Whether the time is over or the search was cancelled.
    pub fn is_over(&self) -> bool {
        (self.cancelled)() || Instant::now() >= self.until
    }
}
