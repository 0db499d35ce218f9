//! Threads that make calls: as many as are needed, up to a bound, so that one long call does not hold
//! the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

/// More calls than this at a time wait for their turn.
const MAX_THREADS: usize = 64;

/// Threads that take what is submitted. Dropped, it lets them finish what they have.
pub(super) struct Pool<'scope, 'env, T, F> {
    scope: &'scope Scope<'scope, 'env>,
    work: Arc<F>,
    sender: Sender<T>,
    receiver: Arc<Mutex<Receiver<T>>>,
    /// Submitted and not yet done.
    pending: Arc<AtomicUsize>,
    threads: usize,
}

impl<'scope, 'env, T, F> Pool<'scope, 'env, T, F>
where
    T: Send + 'scope,
    F: Fn(T) + Send + Sync + 'scope,
{
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, work: F) -> Self {
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        Pool { scope, work: Arc::new(work), sender, receiver, pending: Arc::default(), threads: 0 }
    }

    pub(super) fn submit(&mut self, item: T) {
        let pending = self.pending.fetch_add(1, Ordering::SeqCst) + 1;
        if pending > self.threads && self.threads < MAX_THREADS {
            self.start_thread();
        }
        // The receiver lives as long as the pool does, so this cannot fail.
        let _ = self.sender.send(item);
    }

    fn start_thread(&mut self) {
        self.threads += 1;
        let (work, receiver, pending) =
            (self.work.clone(), self.receiver.clone(), self.pending.clone());
        self.scope.spawn(move || {
            loop {
                let item = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(item) = item else { break };
                work(item);
                pending.fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
}
