//! Runs work on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, ScopedJoinHandle};

/// More threads would not make a disk faster.
pub(crate) const DISK_THREADS: usize = 8;

/// Calls `one` on another thread while `other` runs, or after it if the system refuses a thread.
pub(crate) fn both<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &one);
        let other = other();
        (thread.map_or_else(|_| one(), result_of), other)
    })
}

/// Calls `work` for each item, on at most `threads` threads. No item is begun after one has failed.
///
/// # Errors
///
/// Fails with the error of an item.
pub fn in_parallel<T: Sync, E: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        while !has_failed.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            work(item).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let spawned =
            (1..threads.min(items.len())).map(|_| Builder::new().spawn_scoped(scope, work));
        // If the system refuses more threads, these and the own one do all the work.
        let others: Vec<_> = spawned.map_while(Result::ok).collect();
        let own = work();
        others.into_iter().map(result_of).fold(own, Result::and)
    })
}

fn result_of<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_done_once() {
        let done: Vec<AtomicUsize> = (0..1_000).map(|_| AtomicUsize::new(0)).collect();
        let count = |item: &AtomicUsize| -> Result<(), ()> {
            item.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        assert_eq!(in_parallel(6, &done, count), Ok(()));
        assert!(done.iter().all(|item| item.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn no_item_is_begun_after_a_failure() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..1_000).collect();
        let fail = |item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), usize>(*item)
        };
        assert!(in_parallel(6, &items, fail).is_err());
        // At most the first item of each thread.
        assert!(begun.load(Ordering::Relaxed) <= 6);
    }

    #[test]
    fn both_are_done() {
        assert_eq!(both(|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn nothing_is_done_without_items() {
        assert_eq!(in_parallel(6, &[] as &[u8], |_| Err(())), Ok(()));
    }
}
