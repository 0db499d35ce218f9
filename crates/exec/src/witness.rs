//! Somebody who is told of each file before a command changes it.
//!
//! The calls that change files by name stop at a filter of the command's sandbox. The witness is told what
//! they are about to change, looks at it, and the call goes on as if nobody had asked: it is still for the
//! sandbox to refuse it. When the witness is gone, the command is too.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::sandbox::{Waiting, let_happen, still_waits, take_waiting};
use crate::touch::{Touch, touches};

/// Somebody who is told what a command changes. All of it is told by one thread, for all commands.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// A call of the command is about to change these; it waits until this returns.
    fn touched(&self, touches: &[Touch]);

    /// What the command changes cannot be told, or not all of it.
    fn blind(&self, why: &io::Error);

    /// No process of it is left.
    fn over(&self);
}

/// So many calls are taken before other commands have their turn.
const TURN: usize = 64;

/// Answers calls that wait, as far as there are any now.
///
/// A call that waits to be taken can be interrupted by a signal, which programs do not expect of most of
/// these; one that was taken cannot. So all are taken as soon as they are there, also between two answers.
pub(crate) fn attend_to(calls: &OwnedFd, witness: &dyn Witness) {
    let (mut taken, mut queue) = (0, VecDeque::new());
    loop {
        while taken < TURN && ready(calls).contains(PollFlags::IN) {
            taken += 1;
            // Whoever made the call may be gone already.
            queue.extend(take_waiting(calls));
        }
        let Some(waiting) = queue.pop_front() else { return };
        // A witness that breaks must not keep the command waiting for ever.
        let told = catch_unwind(AssertUnwindSafe(|| tell(calls, &waiting, witness)));
        if told.is_err() {
            witness.blind(&io::Error::other("the witness broke"));
        }
        let_happen(calls, &waiting);
    }
}

/// Whether no call will come any more.
pub(crate) fn is_over(calls: &OwnedFd) -> bool {
    let ready = ready(calls);
    ready.contains(PollFlags::HUP) && !ready.contains(PollFlags::IN)
}

fn tell(calls: &OwnedFd, waiting: &Waiting, witness: &dyn Witness) {
    match touches(waiting) {
        // Another thread may have got the number of one that is gone.
        _ if !still_waits(calls, waiting) => {}
        Ok(touches) if touches.is_empty() => {}
        Ok(touches) => witness.touched(&touches),
        Err(error) if is_callers_fault(&error) => {}
        Err(error) => witness.blind(&error),
    }
}

/// A call with a name that cannot be read will fail; and a thread that is gone makes none.
fn is_callers_fault(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::FAULT | Errno::SRCH | Errno::NOENT | Errno::BADF))
}

fn ready(calls: &OwnedFd) -> PollFlags {
    let mut waiting = [PollFd::new(calls, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut waiting, Some(&now)) {
        Ok(_) => waiting[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}
