//! Runs blocking I/O on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use crate::error::FsError;

/// More threads would not make a disk faster.
const THREADS: usize = 8;

/// Calls `work` for each item, on several threads. When this returns, all items are done, or one has failed.
pub(crate) fn for_each<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> Result<(), FsError> + Sync,
) -> Result<(), FsError> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..THREADS.min(items.len())).map(|_| scope.spawn(work)).collect();
        let ended = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        others.into_iter().map(ended).fold(work(), Result::and)
    })
}
