//! Calls that may have to wait: a FIFO is opened by one side before the other, a socket is connected while
//! its queue is full. Each is performed by a thread of its own, so that no other command waits for it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::caller::reopening_path;
use super::{Answer, Call, reply};

/// As many calls of one command wait at a time.
const MAX_THREADS: usize = 64;

/// The calls of a command that are being waited for.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    threads: Arc<AtomicUsize>,
    /// What they wait for.
    files: Mutex<Vec<Arc<OwnedFd>>>,
}

impl Waiters {
    /// Wakes the threads that wait for the other side of a FIFO: the command has ended.
    pub(super) fn wake(&self) {
        let files = std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
        for file in files {
            let kind = fstat(&*file).map(|status| FileType::from_raw_mode(status.st_mode));
            if kind == Ok(FileType::Fifo) {
                let both = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let _ = openat(CWD, reopening_path(&file), both, Mode::empty());
            }
        }
    }
}

impl Call<'_> {
    /// Performs something on a file in a thread, which then answers the call.
    pub(super) fn later(
        &self,
        file: OwnedFd,
        perform: impl FnOnce(&OwnedFd) -> rustix::io::Result<Answer> + Send + 'static,
    ) -> rustix::io::Result<Answer> {
        let waiters = &self.supervised.waiters;
        let threads = waiters.threads.clone();
        if threads.fetch_add(1, Ordering::Relaxed) >= MAX_THREADS {
            threads.fetch_sub(1, Ordering::Relaxed);
            return Err(Errno::AGAIN);
        }
        let file = Arc::new(file);
        let mut files = waiters.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| Arc::strong_count(file) > 1);
        files.push(file.clone());
        drop(files);
        let (calls, waiting, credentials) =
            (self.supervised.calls.clone(), *self.waiting, self.credentials);
        let thread = std::thread::Builder::new().name("toolcrib-wait".to_owned());
        let counted = threads.clone();
        let started = thread.spawn(move || {
            let answer = credentials.hold(|| perform(&file));
            reply(&calls, &waiting, answer);
            drop(file);
            counted.fetch_sub(1, Ordering::Relaxed);
        });
        started.map(|_| Answer::Later).map_err(|_| {
            threads.fetch_sub(1, Ordering::Relaxed);
            Errno::AGAIN
        })
    }
}
