//! Parallel processing with results in input order.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

/// Number of items that a thread takes at once.
const BATCH_ITEMS: usize = 16;

/// A thread may be this many batches ahead of the slowest one, since results wait in memory.
const MAX_BATCHES_AHEAD: usize = 512;

/// With more threads, they would wait for each other more than for files.
const MAX_THREADS: usize = 8;

/// The number of threads to use.
pub(crate) fn threads() -> usize {
    // Cached, since the query takes longer than searching a small file.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
    })
}

/// Calls `work` for every item, on all cores, and passes the results to `take` in the order of the items,
/// until `take` returns false. `worker` creates the state of one thread.
pub fn map_in_order<T: Sync, W, R: Send>(
    items: &[T],
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &T) -> R + Sync,
    take: impl FnMut(&T, R) -> bool + Send,
) {
    let ordered = OrderedWork {
        items,
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
        state: Mutex::new(State { expected: 0, waiting: BTreeMap::new(), ahead: 0, take }),
        advanced: Condvar::new(),
    };
    let run = || ordered.run(&worker, &work);
    let threads = threads().min(items.len().div_ceil(BATCH_ITEMS * 2));
    if threads <= 1 {
        return run();
    }
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}

struct OrderedWork<'a, T, R, F> {
    items: &'a [T],
    next: AtomicUsize,
    stopped: AtomicBool,
    state: Mutex<State<R, F>>,
    advanced: Condvar,
}

struct State<R, F> {
    expected: usize,
    waiting: BTreeMap<usize, Vec<R>>,
    /// Number of threads that wait because they are too far ahead.
    ahead: usize,
    take: F,
}

impl<T: Sync, R: Send, F: FnMut(&T, R) -> bool + Send> OrderedWork<'_, T, R, F> {
    fn run<W>(&self, worker: impl Fn() -> W, work: impl Fn(&mut W, &T) -> R) {
        // However this thread ends, including by a panic, the others must not wait for it.
        let _end = WakeOthersOnDrop(self);
        let mut worker = worker();
        loop {
            let batch = self.next.fetch_add(1, Ordering::Relaxed);
            let items = self.batch_items(batch);
            if items.is_empty() || self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let mut results = Vec::with_capacity(items.len());
            for item in items {
                if self.stopped.load(Ordering::Relaxed) {
                    return;
                }
                results.push(work(&mut worker, item));
            }
            self.put(batch, results);
        }
    }

    fn batch_items(&self, batch: usize) -> &[T] {
        let from = (batch * BATCH_ITEMS).min(self.items.len());
        &self.items[from..(from + BATCH_ITEMS).min(self.items.len())]
    }

    fn put(&self, batch: usize, results: Vec<R>) {
        let mut state = self.state.lock();
        while batch > state.expected + MAX_BATCHES_AHEAD && !self.stopped.load(Ordering::Relaxed) {
            state.ahead += 1;
            self.advanced.wait(&mut state);
            state.ahead -= 1;
        }
        state.waiting.insert(batch, results);
        loop {
            let expected = state.expected;
            let Some(results) = state.waiting.remove(&expected) else { break };
            for (item, result) in self.batch_items(expected).iter().zip(results) {
                if self.stopped.load(Ordering::Relaxed) {
                    return;
                }
                if !(state.take)(item, result) {
                    self.stopped.store(true, Ordering::Relaxed);
                }
            }
            state.expected += 1;
        }
        // A wake-up without waiters takes as long as searching a small file.
        if state.ahead > 0 {
            self.advanced.notify_all();
        }
    }
}

struct WakeOthersOnDrop<'a, T, R, F: FnMut(&T, R) -> bool + Send>(&'a OrderedWork<'a, T, R, F>)
where
    T: Sync,
    R: Send;

impl<T: Sync, R: Send, F: FnMut(&T, R) -> bool + Send> Drop for WakeOthersOnDrop<'_, T, R, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stopped.store(true, Ordering::Relaxed);
        }
        self.0.advanced.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_stop_when_there_are_enough() {
        let items: Vec<usize> = (0..10_000).collect();
        let mut taken = Vec::new();
        map_in_order(
            &items,
            || (),
            |(), item| item * 2,
            |item, double| {
                assert_eq!(item * 2, double);
                taken.push(*item);
                taken.len() < 5_000
            },
        );
        assert_eq!(taken, items[..5_000]);
    }
}
