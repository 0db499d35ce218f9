//! Somebody who is told of each file before a command changes it.
//!
//! The calls that change files by name stop at a filter of the command's sandbox. The witness is told what
//! they are about to change, looks at it, and the call goes on as if nobody had asked: it is still for the
//! sandbox to refuse it. When the witness is gone, the command is too.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::job::Job;
use crate::sandbox::refused::Refusals;
use crate::sandbox::{
    Confinement, Waiting, answer_promptly, let_fail, let_happen, still_waits, take_waiting,
};
use crate::touch::{Touch, names};

/// Somebody who is told what a command changes. All of it is told by one thread, for all commands.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// A call of the command is about to change these; it waits until this returns.
    fn touched(&self, touches: &[Touch]);

    /// What the command changes cannot be told, or not all of it.
    fn blind(&self, why: &io::Error);

    /// No process of it is left.
    fn over(&self);
}

/// Where the network begins.
const INTERNET: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// So many calls are taken before other commands have their turn.
const TURN: usize = 64;

/// Where calls of one command wait, and who wants to know of them.
#[derive(Debug)]
pub(crate) struct Listened {
    calls: OwnedFd,
    job: Arc<Job>,
    witness: Option<Arc<dyn Witness>>,
    refusals: Mutex<Refusals>,
}

impl Listened {
    pub(crate) fn new(
        calls: OwnedFd,
        job: Arc<Job>,
        confinement: &Confinement,
        witness: Option<Arc<dyn Witness>>,
    ) -> Listened {
        answer_promptly(&calls);
        Listened { calls, job, witness, refusals: Mutex::new(Refusals::new(confinement)) }
    }

    /// Answers calls that wait, as far as there are any now. Answers whether there may be more.
    ///
    /// A call that waits to be taken can be interrupted by a signal, which programs do not expect of most of
    /// these; one that was taken cannot. So all are taken as soon as they are there, also between two answers.
    pub(crate) fn attend(&self) -> bool {
        let (mut taken, mut queue) = (0, VecDeque::new());
        loop {
            while taken < TURN && self.ready().contains(PollFlags::IN) {
                taken += 1;
                // Whoever made the call may be gone already.
                queue.extend(take_waiting(&self.calls));
            }
            let Some(waiting) = queue.pop_front() else { break };
            self.answer(&waiting);
        }
        let ready = self.ready();
        !ready.contains(PollFlags::HUP) || ready.contains(PollFlags::IN)
    }

    /// No call will come any more.
    pub(crate) fn over(&self) {
        self.refusals().settle(&mut |refusal| self.job.refused(refusal));
        if let Some(witness) = &self.witness {
            witness.over();
        }
    }

    fn answer(&self, waiting: &Waiting) {
        if waiting.call == libc::SYS_socket {
            // Libraries ask local services in passing, and go on without them.
            if INTERNET.contains(&(waiting.arguments[0] as u32 as i32)) {
                self.refusals().of_socket(&mut |refusal| self.job.refused(refusal));
            }
            return let_fail(&self.calls, waiting);
        }
        // Whoever breaks while it looks must not keep the command waiting for ever.
        let looked = catch_unwind(AssertUnwindSafe(|| self.look(waiting)));
        if let (Err(_), Some(witness)) = (looked, &self.witness) {
            witness.blind(&io::Error::other("the witness broke"));
        }
        let_happen(&self.calls, waiting);
    }

    fn look(&self, waiting: &Waiting) {
        if self.witness.is_none() && self.refusals().are_told() {
            return;
        }
        let names = names(waiting);
        let attempt = self.refusals().attempt(waiting, names.as_deref().unwrap_or_default());
        let touches = names.and_then(|names| match &self.witness {
            Some(_) => names.iter().filter_map(|name| name.touch().transpose()).collect(),
            None => Ok(Vec::new()),
        });
        // Another thread may have got the number of one that is gone.
        if !still_waits(&self.calls, waiting) {
            return;
        }
        self.refusals().judge(attempt, &mut |refusal| self.job.refused(refusal));
        match (&self.witness, touches) {
            (Some(witness), Ok(touches)) if !touches.is_empty() => witness.touched(&touches),
            (Some(witness), Err(error)) if !is_callers_fault(&error) => witness.blind(&error),
            _ => {}
        }
    }

    fn ready(&self) -> PollFlags {
        let mut waiting = [PollFd::new(&self.calls, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut waiting, Some(&now)) {
            Ok(_) => waiting[0].revents(),
            Err(_) => PollFlags::empty(),
        }
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Listened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.calls.as_fd()
    }
}

/// A call with a name that cannot be read will fail; and a thread that is gone makes none.
fn is_callers_fault(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::FAULT | Errno::SRCH | Errno::NOENT | Errno::BADF))
        || error.kind() == io::ErrorKind::InvalidFilename
}
