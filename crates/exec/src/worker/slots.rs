//! How many workers run at once.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a wish to cancel may go unseen.
const GLANCE: Duration = Duration::from_millis(20);

/// A fixed number of places. Each worker has limits of its own; this bounds what all of them take together.
#[derive(Debug)]
pub struct WorkerPlaces {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// One of the places, until it is dropped.
#[derive(Debug)]
pub struct WorkerPlace<'a> {
    places: &'a WorkerPlaces,
}

impl WorkerPlaces {
    /// So many places.
    pub const fn new(count: usize) -> WorkerPlaces {
        WorkerPlaces { free: Mutex::new(count), given_back: Condvar::new() }
    }

    /// A place, if one is free.
    pub fn try_take(&self) -> Option<WorkerPlace<'_>> {
        self.take(&|| true)
    }

    /// A place, as soon as one is free; nothing, if `cancelled` says so before.
    pub fn take(&self, cancelled: &dyn Fn() -> bool) -> Option<WorkerPlace<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if *free > 0 {
                *free -= 1;
                return Some(WorkerPlace { places: self });
            }
            if cancelled() {
                return None;
            }
            let waited = self.given_back.wait_timeout(free, GLANCE);
            free = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for WorkerPlace<'_> {
    fn drop(&mut self) {
        *self.places.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.places.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_places_than_there_are() {
        static PLACES: WorkerPlaces = WorkerPlaces::new(2);
        let first = PLACES.try_take();
        let second = PLACES.take(&|| false);
        assert!(first.is_some() && second.is_some());
        assert!(PLACES.try_take().is_none());
        let waiting = std::thread::spawn(|| PLACES.take(&|| false).is_some());
        drop(second);
        assert!(waiting.join().unwrap());
        assert!(PLACES.try_take().is_some());
    }
}
