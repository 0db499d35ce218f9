//! A question that several may answer, and the channel of a transport that asks its own user.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use toolcrib::{Answer, Question};

use crate::answers::{settled_by, unanswered};
use crate::monitor::Monitor;
use crate::open_question::{OpenQuestion, SettleError};
use crate::protocol::{Answerer, Settled};

/// How a transport asks its own user or program.
pub trait Channel: Sync {
    /// Who answers here.
    fn answerer(&self) -> Answerer;

    /// Asks, at most for `limit`. Ends early if `asked` is settled elsewhere. Returns [`Answer::NoApprover`] if
    /// nobody can be asked here.
    fn ask(&self, question: &Question<'_>, asked: &Asked, limit: Option<Duration>) -> Answer;

    /// Whether it shows one question of a session at a time.
    fn asks_one_at_a_time(&self) -> bool {
        true
    }

    /// Whether asking ends the call, which is made again with the answer.
    fn asks_by_result(&self) -> bool {
        false
    }

    /// Whether the call was made again with an answer to this question.
    fn has_answer(&self, question: &Question<'_>) -> bool {
        let _ = question;
        false
    }
}

/// A channel of a program that can ask nobody.
#[derive(Debug, Clone, Copy)]
pub struct NoChannel;

impl Channel for NoChannel {
    fn answerer(&self) -> Answerer {
        Answerer::Program
    }

    fn ask(&self, _: &Question<'_>, _: &Asked, _: Option<Duration>) -> Answer {
        Answer::NoApprover
    }

    fn asks_one_at_a_time(&self) -> bool {
        false
    }
}

/// A question that several may answer.
#[derive(Debug, Clone)]
pub struct Asked {
    monitor: Arc<Monitor>,
    pub(crate) open: Arc<OpenQuestion>,
}

impl Asked {
    /// Opens a question.
    pub fn open(monitor: &Arc<Monitor>, question: &Question<'_>) -> Asked {
        Asked::open_for(monitor, question, None)
    }

    /// Opens a question of a client with this name. The default is the one that the monitor knows.
    pub(crate) fn open_for(
        monitor: &Arc<Monitor>,
        question: &Question<'_>,
        client: Option<&str>,
    ) -> Asked {
        Asked { monitor: monitor.clone(), open: monitor.open_question(question, client) }
    }

    /// How the question was settled, if it was.
    pub fn settled(&self) -> Option<Settled> {
        self.open.settled()
    }

    /// Calls a function when the question is settled, or at once if it is.
    pub fn on_settled(&self, listener: impl FnOnce() + Send + 'static) {
        self.open.on_settled(listener);
    }

    /// Whether a viewer is connected, who can answer the question.
    pub fn has_active_viewer(&self) -> bool {
        self.monitor.has_active_viewer()
    }

    /// Settles the question by an answer with rules, which `store` stores if the answer wins.
    ///
    /// # Errors
    ///
    /// Fails if the question was settled before, or if the rules cannot be stored; it is then still open.
    pub fn settle<E>(
        &self,
        answer: &Answer,
        by: Answerer,
        store: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), SettleError<E>> {
        let settled = settled_by(answer, by).unwrap_or_else(|| unanswered(Answerer::Timeout));
        self.monitor.settle(&self.open, settled, store).map(|_| ())
    }

    /// A signal that ends the wait for input when the question is settled.
    ///
    /// # Errors
    ///
    /// Fails if the process has too many open files.
    pub fn settled_signal(&self) -> io::Result<SettledSignal> {
        let signal = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let settled = signal.clone();
        self.on_settled(move || {
            let _ = rustix::io::write(&*settled, &1_u64.to_ne_bytes());
        });
        Ok(SettledSignal { signal })
    }
}

/// Ends the wait for input when a question is settled.
#[derive(Debug)]
pub struct SettledSignal {
    signal: Arc<OwnedFd>,
}

impl SettledSignal {
    /// Waits until there is input, or until the question is settled. Returns whether there is input.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot wait.
    pub fn wait_for_input(&self, input: BorrowedFd<'_>) -> io::Result<bool> {
        let mut polled = [
            PollFd::from_borrowed_fd(input, PollFlags::IN),
            PollFd::new(&*self.signal, PollFlags::IN),
        ];
        loop {
            match poll(&mut polled, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => return Ok(polled[1].revents().is_empty()),
            }
        }
    }
}
