//! The processes of one pattern: at least one, and more while threads need them, up to the maximum.

use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::wire::{self, Response, ResponseReader};
use super::{CompileError, Process, Processes};
use crate::deadline::Deadline;

/// How often a waiting thread checks its deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Compiling takes milliseconds. Starting a process may take longer on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Pool {
    pattern: String,
    processes: Arc<dyn Processes>,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<PooledProcess>,
    /// Number of processes in use.
    in_use: usize,
}

/// A process that has compiled the pattern. A process may end with the thread that started it, so each thread
/// prefers its own.
#[derive(Debug)]
pub(super) struct PooledProcess {
    thread: ThreadId,
    pub(super) connection: Box<dyn Process>,
}

impl Pool {
    /// Also returns the relaxed pattern, which is empty if there is none.
    pub(super) fn new(
        pattern: String,
        processes: Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<(Pool, String), CompileError> {
        let (state, released) = (Mutex::default(), Condvar::new());
        let pool = Pool { pattern, processes, state, released };
        let (first, relaxed) = pool.start(Some(stop), stop)?.unzip();
        pool.state.lock().idle.extend(first);
        Ok((pool, relaxed.unwrap_or_default()))
    }

    /// Returns a process for this thread. `None` if the deadline passed, or if none can be started.
    pub(super) fn acquire(&self, stop: &Deadline<'_>) -> Option<PooledProcess> {
        let here = std::thread::current().id();
        let mut state = self.state.lock();
        loop {
            if stop.is_over() {
                return None;
            }
            let own = state.idle.iter().position(|process| process.thread == here);
            if let Some(own) = own {
                state.in_use += 1;
                return Some(state.idle.swap_remove(own));
            }
            // If this pattern has no process, wait until another search frees one. Otherwise use an idle one.
            let is_last = state.idle.is_empty() && state.in_use == 0;
            state.in_use += 1;
            drop(state);
            let started = self.start(is_last.then_some(stop), stop);
            state = self.state.lock();
            match started {
                Ok(Some((process, _))) => return Some(process),
                Ok(None) => {}
                Err(_) if is_last => {
                    state.in_use -= 1;
                    return None;
                }
                Err(_) => {}
            }
            if let Some(process) = state.idle.pop() {
                return Some(process);
            }
            state.in_use -= 1;
            if state.in_use > 0 {
                self.released.wait_for(&mut state, POLL_INTERVAL);
            }
        }
    }

    /// Returns a process that can be used again.
    pub(super) fn release(&self, process: PooledProcess) {
        let mut state = self.state.lock();
        state.in_use -= 1;
        state.idle.push(process);
        drop(state);
        self.released.notify_one();
    }

    /// Kills a process that cannot be used again.
    pub(super) fn discard(&self, process: PooledProcess) {
        drop(process);
        self.state.lock().in_use -= 1;
        self.released.notify_one();
    }

    /// Starts a process and compiles the pattern in it. Also returns the relaxed pattern. `None` if the maximum number
    /// already run.
    fn start(
        &self,
        wait: Option<&Deadline<'_>>,
        stop: &Deadline<'_>,
    ) -> Result<Option<(PooledProcess, String)>, CompileError> {
        let started = self.processes.start(wait).map_err(CompileError::NoProcess)?;
        let Some(mut process) = started else { return Ok(None) };
        let header = wire::compile_header(&self.pattern).ok_or(CompileError::TooLarge)?;
        let (mut responses, mut response) = (ResponseReader::default(), None);
        let outcome = process.ask(
            [&header, self.pattern.as_bytes()],
            START_TIMEOUT,
            stop,
            &mut |bytes: &[u8]| {
                responses.feed(bytes);
                response = responses.next();
                response.is_some()
            },
        );
        match (outcome, response) {
            (Ok(()), Some(Response::Ready(relaxed))) => {
                let thread = std::thread::current().id();
                Ok(Some((PooledProcess { thread, connection: process }, relaxed)))
            }
            (Ok(()), Some(Response::Invalid(reason))) => Err(CompileError::Invalid(reason)),
            _ => Err(CompileError::TooLarge),
        }
    }
}
