//! Calls that may have to wait: a FIFO is opened by one side before the other, a file has a lease, a socket is
//! connected while the queue of its server is full. Each is tried again and again by a thread of its own, so that
//! no other command waits for it. The thread ends with its caller: it is never inside a call that only another
//! process can end.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::{Answer, Call, reply};
use crate::sandbox::still_waits;

/// As many calls of one command wait at a time.
const MAX_THREADS: usize = 64;

/// Between two tries. The first pauses are short, since the other side is mostly about to come.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How many calls of a command are being waited for.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    threads: Arc<AtomicUsize>,
}

/// One of them, counted as long as it exists.
struct Place(Arc<AtomicUsize>);

impl Waiters {
    fn take_place(&self) -> rustix::io::Result<Place> {
        let place = Place(self.threads.clone());
        let taken = self.threads.fetch_add(1, Ordering::Relaxed);
        if taken < MAX_THREADS { Ok(place) } else { Err(Errno::AGAIN) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Call<'_> {
    /// Tries something on a file until it has an answer, and answers the call. A try must not wait for long:
    /// between two of them the caller may turn out to have ended.
    pub(super) fn later(
        &self,
        file: OwnedFd,
        mut attempt: impl FnMut(&OwnedFd) -> rustix::io::Result<Option<Answer>> + Send + 'static,
    ) -> rustix::io::Result<Answer> {
        let place = self.supervised.waiters.take_place()?;
        let (calls, waiting, credentials) =
            (self.supervised.calls.clone(), *self.waiting, self.credentials);
        let thread = std::thread::Builder::new().name("toolcrib-wait".to_owned());
        let started = thread.spawn(move || {
            let mut pause = FIRST_PAUSE;
            let answer = loop {
                match credentials.hold(|| attempt(&file)) {
                    Ok(None) => {}
                    Ok(Some(answer)) => break Ok(answer),
                    Err(errno) => break Err(errno),
                }
                if !still_waits(&calls, &waiting) {
                    return;
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            };
            // Whoever hears the answer may ask for the next place.
            drop(place);
            reply(&calls, &waiting, answer);
        });
        started.map(|_| Answer::Later).map_err(|_| Errno::AGAIN)
    }
}
