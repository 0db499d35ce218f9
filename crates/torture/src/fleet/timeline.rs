//! Events in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::protocol::Time;

/// Events that have not happened yet. Those of the same time happen in the order in which they were added.
pub(super) struct Timeline<E> {
    now: Time,
    added: u64,
    waiting: BinaryHeap<Reverse<(Time, u64, Entry<E>)>>,
}

/// An event. It has no order of its own.
struct Entry<E>(E);

impl<E> Timeline<E> {
    pub(super) fn new() -> Self {
        Timeline { now: 0, added: 0, waiting: BinaryHeap::new() }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Adds an event that happens after this time.
    pub(super) fn after(&mut self, delay: Time, event: E) {
        self.added += 1;
        self.waiting.push(Reverse((self.now + delay, self.added, Entry(event))));
    }

    /// The next event before a time.
    pub(super) fn next(&mut self, end: Time) -> Option<E> {
        let Reverse((time, _, _)) = self.waiting.peek()?;
        if *time >= end {
            return None;
        }
        let Reverse((time, _, Entry(event))) = self.waiting.pop()?;
        self.now = time;
        Some(event)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
