//! Calls that may block: one side of a FIFO is opened before the other, a file has a lease, the queue of a
//! server's socket is full. A separate thread retries each of them, so that no other command waits for it. The
//! thread ends when its caller does, because it never makes a blocking call itself.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::{Call, Response, reply};
use crate::sandbox::is_still_pending;

/// The largest number of blocked calls of one command.
const MAX_THREADS: usize = 64;

/// The pause between two attempts. It starts short, since the other side mostly arrives soon.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The number of blocked calls of a command.
#[derive(Debug, Default)]
pub(super) struct BlockingCalls {
    threads: Arc<AtomicUsize>,
}

/// Counts as one blocked call until it is dropped.
struct Slot(Arc<AtomicUsize>);

impl BlockingCalls {
    fn take_slot(&self) -> rustix::io::Result<Slot> {
        let slot = Slot(self.threads.clone());
        let taken = self.threads.fetch_add(1, Ordering::Relaxed);
        if taken < MAX_THREADS { Ok(slot) } else { Err(Errno::AGAIN) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Call<'_> {
    /// Retries `attempt` on a thread until it returns a response, and responds to the call. An attempt must
    /// not block for long: the caller may end between two of them.
    pub(super) fn retry_on_thread(
        &self,
        file: OwnedFd,
        mut attempt: impl FnMut(&OwnedFd) -> rustix::io::Result<Option<Response>> + Send + 'static,
    ) -> rustix::io::Result<Response> {
        let slot = self.supervised.blocking.take_slot()?;
        let (calls, notification, credentials) =
            (self.supervised.listener.clone(), *self.notification, self.credentials);
        let thread = std::thread::Builder::new().name("toolcrib-wait".to_owned());
        let started = thread.spawn(move || {
            let mut pause = FIRST_PAUSE;
            let answer = loop {
                match credentials.run_as(|| attempt(&file)) {
                    Ok(None) => {}
                    Ok(Some(answer)) => break Ok(answer),
                    Err(errno) => break Err(errno),
                }
                if !is_still_pending(&calls, &notification) {
                    return;
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            };
            // The caller may make the next blocking call as soon as it has the response.
            drop(slot);
            reply(&calls, &notification, answer);
        });
        started.map(|_| Response::Later).map_err(|_| Errno::AGAIN)
    }
}
