//! A bounded thread pool for calls, so that one long call does not delay the others. Pending calls are bounded in
//! number and in bytes; beyond that, reading pauses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::Scope;

use parking_lot::{Condvar, Mutex};

/// The maximum number of concurrent calls.
const MAX_THREADS: usize = 64;
/// The maximum number of pending calls.
pub(super) const MAX_PENDING: usize = 256;
/// The maximum number of bytes of pending calls.
pub(super) const MAX_PENDING_BYTES: usize = 64 << 20;

/// Worker threads for submitted items. When dropped, they finish the pending items.
pub(super) struct Pool<'scope, 'env, T, F> {
    scope: &'scope Scope<'scope, 'env>,
    shared: Arc<Shared<T, F>>,
    threads: usize,
}

struct Shared<T, F> {
    work: F,
    queue: Mutex<Queue<T>>,
    changed: Condvar,
}

/// How to treat an item if the pool is full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenFull {
    Wait,
    Refuse,
}

struct Queue<T> {
    waiting: VecDeque<Item<T>>,
    /// Whether the running item blocks the items after it.
    is_blocked: bool,
    /// The number of submitted, unfinished items.
    pending: usize,
    pending_bytes: usize,
    closed: bool,
}

struct Item<T> {
    item: T,
    bytes: usize,
    blocks_later: bool,
}

impl<'scope, 'env, T, F> Pool<'scope, 'env, T, F>
where
    T: Send + 'scope,
    F: Fn(T) + Send + Sync + 'scope,
{
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, work: F) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            is_blocked: false,
            pending: 0,
            pending_bytes: 0,
            closed: false,
        };
        let shared = Shared { work, queue: Mutex::new(queue), changed: Condvar::new() };
        Pool { scope, shared: Arc::new(shared), threads: 0 }
    }

    /// Submits an item of this size. With `blocks_later`, later items wait for it. A refused item is returned.
    pub(super) fn submit(
        &mut self,
        item: T,
        bytes: usize,
        blocks_later: bool,
        when_full: WhenFull,
    ) -> Result<(), T> {
        let full = |queue: &mut Queue<T>| {
            queue.pending > 0
                && (queue.pending >= MAX_PENDING || queue.pending_bytes + bytes > MAX_PENDING_BYTES)
        };
        let mut queue = self.shared.queue.lock();
        if when_full == WhenFull::Refuse && full(&mut queue) {
            return Err(item);
        }
        self.shared.changed.wait_while(&mut queue, full);
        queue.pending += 1;
        queue.pending_bytes += bytes;
        queue.waiting.push_back(Item { item, bytes, blocks_later });
        let wanted = queue.pending.min(MAX_THREADS);
        drop(queue);
        self.shared.changed.notify_all();
        if wanted > self.threads && !self.start_thread() && self.threads == 0 {
            // No thread could be started, so this thread runs it.
            while self.shared.run_next(false) {}
        }
        Ok(())
    }

    fn start_thread(&mut self) -> bool {
        let shared = self.shared.clone();
        let started = std::thread::Builder::new()
            .spawn_scoped(self.scope, move || while shared.run_next(true) {})
            .is_ok();
        self.threads += usize::from(started);
        started
    }
}

impl<T, F> Drop for Pool<'_, '_, T, F> {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl<T, F: Fn(T)> Shared<T, F> {
    /// Runs the next item, waiting for one if `wait`. Returns whether there was one.
    fn run_next(&self, wait: bool) -> bool {
        let mut queue = self.queue.lock();
        if wait {
            let idle = |queue: &mut Queue<T>| {
                if queue.waiting.is_empty() { !queue.closed } else { queue.is_blocked }
            };
            self.changed.wait_while(&mut queue, idle);
        }
        let Some(Item { item, bytes, blocks_later }) = queue.waiting.pop_front() else {
            return false;
        };
        queue.is_blocked |= blocks_later;
        drop(queue);
        (self.work)(item);
        let mut queue = self.queue.lock();
        queue.is_blocked &= !blocks_later;
        queue.pending -= 1;
        queue.pending_bytes -= bytes;
        drop(queue);
        self.changed.notify_all();
        true
    }
}
