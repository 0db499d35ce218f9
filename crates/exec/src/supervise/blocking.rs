//! Calls that may block: one side of a FIFO is opened before the other, a file has a lease, the queue of a
//! server's socket is full. A separate thread retries each of them, so that no other command waits for it.
//! The thread ends with its caller: it is not inside a call that only another process can end.
//!
//! A socket is an exception: it shares its flags and its timeout with the caller, which can change them at
//! any moment and so block the thread for as long as the kernel waits. Such a thread belongs to one command.
//! When all processes of the command have exited, its sockets are shut down, which ends the wait for a host. A wait
//! for a local server ends with that server, and there is a limit for all commands.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::{Call, Response, reply};
use crate::sandbox::is_still_pending;

/// The largest number of blocked calls of one command.
const MAX_THREADS: usize = 64;

/// The largest number of blocked calls of all commands. A `connect` to a local server can outlive its command.
const MAX_ALL_THREADS: usize = 1024;

/// The number of threads of all commands.
static ALL_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Calls of one command that wait for the thread that performs them in order. Each has a descriptor.
const MAX_QUEUED: usize = 256;

/// The stack of a thread. It makes a few system calls.
const STACK_BYTES: usize = 128 << 10;

/// The pause between two attempts. It starts short, since the other side mostly arrives soon.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The blocked calls of a command.
#[derive(Debug)]
pub(super) struct BlockingCalls {
    threads: Arc<AtomicUsize>,
    /// Calls for the thread that performs them in order. It is started for the first of them.
    queue: OnceLock<SyncSender<QueuedCall>>,
    /// The files of the calls that are being performed.
    files: Mutex<OpenFiles>,
}

/// The files of calls. `None` once the command has ended.
type OpenFiles = Option<Vec<Weak<OwnedFd>>>;

type QueuedCall = Box<dyn FnOnce() + Send>;

/// Counts as one blocked call until it is dropped.
struct Slot(Arc<AtomicUsize>);

impl Default for BlockingCalls {
    fn default() -> BlockingCalls {
        let (threads, queue) = (Arc::default(), OnceLock::new());
        BlockingCalls { threads, queue, files: Mutex::new(Some(Vec::new())) }
    }
}

impl BlockingCalls {
    fn take_slot(&self) -> rustix::io::Result<Slot> {
        let all = ALL_THREADS.fetch_add(1, Ordering::Relaxed);
        let taken = self.threads.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(self.threads.clone());
        if taken < MAX_THREADS && all < MAX_ALL_THREADS { Ok(slot) } else { Err(Errno::AGAIN) }
    }

    /// Remembers the file of a call, and forgets those of calls that have ended. Fails if the command has ended.
    fn remember(&self, file: OwnedFd) -> rustix::io::Result<Arc<OwnedFd>> {
        let file = Arc::new(file);
        let mut files = self.files.lock();
        let files = files.as_mut().ok_or(Errno::SRCH)?;
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        Ok(file)
    }

    /// Ends the calls that wait for another machine: all processes of the command have exited.
    pub(super) fn end(&self) {
        for file in self.files.lock().take().into_iter().flatten() {
            if let Some(file) = file.upgrade() {
                // Fails for files that are no sockets.
                let _ = shutdown(&*file, Shutdown::Both);
            }
        }
    }

    /// Queues a call for the thread that performs them in order. Fails if too many wait.
    fn enqueue(&self, call: QueuedCall) -> rustix::io::Result<()> {
        let queue = match self.queue.get() {
            Some(queue) => queue,
            None => {
                let slot = self.take_slot()?;
                let (sender, calls) = sync_channel::<QueuedCall>(MAX_QUEUED);
                let started = thread().spawn(move || {
                    let _slot = slot;
                    calls.into_iter().for_each(|call| call());
                });
                started.map_err(|_| Errno::AGAIN)?;
                self.queue.get_or_init(|| sender)
            }
        };
        queue.try_send(call).map_err(|_| Errno::AGAIN)
    }
}

fn thread() -> std::thread::Builder {
    std::thread::Builder::new().name("toolcrib-wait".to_owned()).stack_size(STACK_BYTES)
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        ALL_THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Call<'_> {
    /// Performs a call that normally does not block, on a thread of the command: if the call blocks after all,
    /// only this command waits.
    pub(super) fn perform_on_thread(
        &self,
        file: OwnedFd,
        perform: impl FnOnce(&OwnedFd) -> rustix::io::Result<Response> + Send + 'static,
    ) -> rustix::io::Result<Response> {
        let (calls, notification, credentials) =
            (self.supervised.listener.clone(), *self.notification, self.credentials);
        let file = self.supervised.blocking.remember(file)?;
        let call = move || {
            if is_still_pending(&calls, &notification) {
                let answer = credentials.run_as(|| perform(&file));
                // The caller may close its socket next, which is the last one then.
                drop(file);
                reply(&calls, &notification, answer);
            }
        };
        self.supervised.blocking.enqueue(Box::new(call)).map(|()| Response::Later)
    }

    /// Retries `attempt` on a thread until it returns a response, and responds to the call. An attempt must
    /// not block for long: the caller may end between two of them.
    pub(super) fn retry_on_thread(
        &self,
        file: OwnedFd,
        mut attempt: impl FnMut(&OwnedFd) -> rustix::io::Result<Option<Response>> + Send + 'static,
    ) -> rustix::io::Result<Response> {
        let slot = self.supervised.blocking.take_slot()?;
        let file = self.supervised.blocking.remember(file)?;
        let (calls, notification, credentials) =
            (self.supervised.listener.clone(), *self.notification, self.credentials);
        let started = thread().spawn(move || {
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
