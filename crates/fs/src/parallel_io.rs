//! Runs work on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

/// More threads would not make a disk faster.
pub(crate) const DISK_THREADS: usize = 8;

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
        let others: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(work)).collect();
        let ended = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        others.into_iter().map(ended).fold(work(), Result::and)
    })
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
    fn nothing_is_done_without_items() {
        assert_eq!(in_parallel(6, &[] as &[u8], |_| Err(())), Ok(()));
    }
}
