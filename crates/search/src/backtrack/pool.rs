//! The processes of one pattern: at least one, and more while threads need them, up to the maximum.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use super::wire::{self, Answer, Answers};
use super::{Process, Processes, Unready};
use crate::deadline::Deadline;

/// How often a waiting thread checks its deadline.
const GLANCE: Duration = Duration::from_millis(20);

/// Compiling takes milliseconds. Starting a process may take longer on a busy machine.
const LONGEST_START: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Pool {
    pattern: String,
    processes: Arc<dyn Processes>,
    state: Mutex<State>,
    put_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Member>,
    /// Number of processes in use.
    taken: usize,
}

/// A process that has compiled the pattern. A process may end with the thread that started it, so each thread
/// prefers its own.
#[derive(Debug)]
pub(super) struct Member {
    thread: ThreadId,
    pub(super) process: Box<dyn Process>,
}

impl Pool {
    pub(super) fn new(
        pattern: String,
        processes: Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Pool, Unready> {
        let (state, put_back) = (Mutex::default(), Condvar::new());
        let pool = Pool { pattern, processes, state, put_back };
        let first = pool.start(Some(stop), stop)?;
        pool.state().idle.extend(first);
        Ok(pool)
    }

    /// Returns a process for this thread. `None` if the deadline passed, or if none can be started.
    pub(super) fn take(&self, stop: &Deadline<'_>) -> Option<Member> {
        let here = std::thread::current().id();
        let mut state = self.state();
        loop {
            if stop.is_over() {
                return None;
            }
            let own = state.idle.iter().position(|member| member.thread == here);
            if let Some(own) = own {
                state.taken += 1;
                return Some(state.idle.swap_remove(own));
            }
            // If this pattern has no process, wait until another search frees one. Otherwise use an idle one.
            let is_last = state.idle.is_empty() && state.taken == 0;
            state.taken += 1;
            drop(state);
            let started = self.start(is_last.then_some(stop), stop);
            state = self.state();
            match started {
                Ok(Some(member)) => return Some(member),
                Ok(None) => {}
                Err(_) if is_last => {
                    state.taken -= 1;
                    return None;
                }
                Err(_) => {}
            }
            if let Some(member) = state.idle.pop() {
                return Some(member);
            }
            state.taken -= 1;
            if state.taken > 0 {
                let waited = self.put_back.wait_timeout(state, GLANCE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Returns a process that can be used again.
    pub(super) fn put_back(&self, member: Member) {
        let mut state = self.state();
        state.taken -= 1;
        state.idle.push(member);
        drop(state);
        self.put_back.notify_one();
    }

    /// Kills a process that cannot be used again.
    pub(super) fn lose(&self, member: Member) {
        drop(member);
        self.state().taken -= 1;
        self.put_back.notify_one();
    }

    /// Starts a process and compiles the pattern in it. Returns `None` if the maximum number already run.
    fn start(
        &self,
        wait: Option<&Deadline<'_>>,
        stop: &Deadline<'_>,
    ) -> Result<Option<Member>, Unready> {
        let started = self.processes.start(wait).map_err(Unready::NoProcess)?;
        let Some(mut process) = started else { return Ok(None) };
        let header = wire::prepare(&self.pattern).ok_or(Unready::TooLarge)?;
        let (mut answers, mut answer) = (Answers::default(), None);
        let asked = process.ask(
            [&header, self.pattern.as_bytes()],
            LONGEST_START,
            stop,
            &mut |bytes: &[u8]| {
                answers.feed(bytes);
                answer = answers.next();
                answer.is_some()
            },
        );
        match (asked, answer) {
            (Ok(()), Some(Answer::Ready)) => {
                Ok(Some(Member { thread: std::thread::current().id(), process }))
            }
            (Ok(()), Some(Answer::Wrong(reason))) => Err(Unready::Wrong(reason)),
            _ => Err(Unready::TooLarge),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
