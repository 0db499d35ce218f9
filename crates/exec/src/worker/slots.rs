//! Limits how many workers run at once.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How often to check for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A fixed number of slots. Each worker has its own limits; this bounds the total.
#[derive(Debug)]
pub struct WorkerSlots {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A taken slot. Dropping this returns it.
#[derive(Debug)]
pub struct WorkerSlot<'a> {
    slots: &'a WorkerSlots,
}

impl WorkerSlots {
    /// Creates this many slots.
    pub const fn new(count: usize) -> WorkerSlots {
        WorkerSlots { free: Mutex::new(count), returned: Condvar::new() }
    }

    /// Takes a slot. `None` if none is free.
    pub fn try_take(&self) -> Option<WorkerSlot<'_>> {
        self.take(&|| true)
    }

    /// Takes a slot as soon as one is free. `None` if `cancelled` returns true before that.
    pub fn take(&self, cancelled: &dyn Fn() -> bool) -> Option<WorkerSlot<'_>> {
        let mut free = self.free.lock();
        loop {
            if *free > 0 {
                *free -= 1;
                return Some(WorkerSlot { slots: self });
            }
            if cancelled() {
                return None;
            }
            self.returned.wait_for(&mut free, POLL_INTERVAL);
        }
    }
}

impl Drop for WorkerSlot<'_> {
    fn drop(&mut self) {
        *self.slots.free.lock() += 1;
        self.slots.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_slots_are_taken_than_exist() {
        static SLOTS: WorkerSlots = WorkerSlots::new(2);
        let first = SLOTS.try_take();
        let second = SLOTS.take(&|| false);
        assert!(first.is_some() && second.is_some());
        assert!(SLOTS.try_take().is_none());
        let waiting = std::thread::spawn(|| SLOTS.take(&|| false).is_some());
        drop(second);
        assert!(waiting.join().unwrap());
        assert!(SLOTS.try_take().is_some());
    }
}
