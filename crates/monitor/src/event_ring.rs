//! The recent events, numbered, within a limit of number and size.

use std::collections::VecDeque;
use std::sync::Arc;

/// Limits of the kept events.
const MAX_EVENTS: usize = 4_096;
const MAX_BYTES: usize = 4 << 20;

/// The recent events. Numbers start at 1.
#[derive(Debug)]
pub(crate) struct EventRing<E> {
    /// Number of the last event.
    last: u64,
    events: VecDeque<(usize, Arc<E>)>,
    bytes: usize,
}

impl<E> Default for EventRing<E> {
    fn default() -> Self {
        EventRing { last: 0, events: VecDeque::new(), bytes: 0 }
    }
}

impl<E> EventRing<E> {
    /// Adds an event of about this size, and drops the oldest ones beyond the limits.
    pub(crate) fn push(&mut self, bytes: usize, event: Arc<E>) {
        self.last += 1;
        self.bytes += bytes;
        self.events.push_back((bytes, event));
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            let Some((bytes, _)) = self.events.pop_front() else { break };
            self.bytes -= bytes;
        }
    }

    /// Number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The first event number that can still be read, and how many after `after` cannot.
    pub(crate) fn resume(&self, after: u64) -> (u64, u64) {
        let after = after.min(self.last);
        let dropped = self.last - self.events.len() as u64;
        (after.max(dropped), dropped.saturating_sub(after))
    }

    /// At most `max` events after a number that [`EventRing::resume`] returned, with their numbers.
    pub(crate) fn after(&self, after: u64, max: usize) -> Vec<(u64, Arc<E>)> {
        let dropped = self.last - self.events.len() as u64;
        let skip = usize::try_from(after.saturating_sub(dropped)).unwrap_or(usize::MAX);
        let events = self.events.iter().skip(skip).take(max);
        (after.max(dropped) + 1..).zip(events.map(|(_, event)| event.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_events_are_dropped_and_counted() {
        let mut ring = EventRing::default();
        for number in 1..=5_000_u64 {
            ring.push(10, Arc::new(number));
        }
        assert_eq!(ring.last(), 5_000);
        assert_eq!(ring.resume(0), (904, 904));
        assert_eq!(ring.resume(900), (904, 4));
        assert_eq!(ring.resume(4_990), (4_990, 0));
        assert_eq!(ring.resume(9_999), (5_000, 0), "the number of another server");
        let read = ring.after(4_998, 10);
        assert_eq!(read, [(4_999, Arc::new(4_999)), (5_000, Arc::new(5_000))]);
        assert_eq!(ring.after(904, 2), [(905, Arc::new(905)), (906, Arc::new(906))]);
        ring.push(MAX_BYTES, Arc::new(5_001));
        assert_eq!(ring.resume(0), (5_000, 5_000), "by size");
        assert_eq!(ring.after(5_001, 2), []);
    }
}
