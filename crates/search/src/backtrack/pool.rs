//! The processes that match one pattern: one at least, and more as threads ask and as many as may run.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use super::wire::{self, Answer, Answers};
use super::{Process, Processes, Unready};
use crate::deadline::Deadline;

/// How long a wish to stop may go unseen.
const GLANCE: Duration = Duration::from_millis(20);

/// A pattern takes milliseconds to be compiled; to start a process may take longer where much else is done.
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
    /// Those that are in use.
    taken: usize,
}

/// A process that has the pattern ready. A process may end with the thread that started it, so each thread
/// uses its own first.
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

    /// A process for this thread; nothing, if it is time to stop or there is none to be had.
    pub(super) fn take(&self, stop: &Deadline<'_>) -> Option<Member> {
        let here = std::thread::current().id();
        let mut state = self.state();
        loop {
            if stop.now() {
                return None;
            }
            let own = state.idle.iter().position(|member| member.thread == here);
            if let Some(own) = own {
                state.taken += 1;
                return Some(state.idle.swap_remove(own));
            }
            // The last one waits until another search leaves it a process; others take one that is idle.
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

    /// Takes back a process that may be asked again.
    pub(super) fn put_back(&self, member: Member) {
        let mut state = self.state();
        state.taken -= 1;
        state.idle.push(member);
        drop(state);
        self.put_back.notify_one();
    }

    /// Ends a process that may not.
    pub(super) fn lose(&self, member: Member) {
        drop(member);
        self.state().taken -= 1;
        self.put_back.notify_one();
    }

    /// Starts a process and makes the pattern ready in it; nothing, if as many run as may.
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
