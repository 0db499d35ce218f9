//! Asks everybody who can answer a question, and uses the first answer.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use toolcrib::{Answer, Approver, Cancel, Question};

use crate::answers::{answer_of, nothing, settled_by, unanswered};
use crate::monitor::Monitor;
use crate::open_question::{OpenQuestion, SettleError};
use crate::protocol::{Answerer, Settled};

/// How long a call waits for somebody who looks.
#[derive(Debug, Clone, Copy)]
pub struct WatcherTimeouts {
    /// If its client cannot be asked. Clients give up after 60 s.
    pub alone: Duration,
    /// Before it returns the question to its client.
    pub before_result: Duration,
}

impl Default for WatcherTimeouts {
    fn default() -> Self {
        let (alone, before_result) = (Duration::from_secs(50), Duration::from_secs(20));
        WatcherTimeouts { alone, before_result }
    }
}

/// How often a waiting call checks whether it was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// The sentence of a denial whose question can still be answered.
const STILL_OPEN: &str = "The question is still open on the page; after the user has answered it there, repeat the call.";

/// How a transport asks its own user or program.
pub trait Channel: Sync {
    /// Who answers here.
    fn answerer(&self) -> Answerer;

    /// Asks, at most for `limit`. Ends early if `asked` is settled by somebody else. Returns [`Answer::NoApprover`] if
    /// nobody can be asked here.
    fn ask(&self, question: &Question<'_>, asked: &Asked, limit: Option<Duration>) -> Answer;

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
}

/// A question that several may answer.
#[derive(Debug, Clone)]
pub struct Asked {
    monitor: Arc<Monitor>,
    open: Arc<OpenQuestion>,
}

impl Asked {
    /// Opens a question.
    pub fn open(monitor: &Arc<Monitor>, question: &Question<'_>) -> Asked {
        Asked { monitor: monitor.clone(), open: monitor.open_question(question) }
    }

    /// How the question was settled, if it was.
    pub fn settled(&self) -> Option<Settled> {
        self.open.settled()
    }

    /// Calls a function when the question is settled, or at once if it is.
    pub fn on_settled(&self, listener: impl FnOnce() + Send + 'static) {
        self.open.on_settled(listener);
    }

    /// Whether somebody else is looking at the question.
    pub fn is_watched(&self) -> bool {
        self.monitor.is_watched()
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

/// Asks through a channel and at the monitor's socket at once.
pub struct FirstAnswer<'a> {
    monitor: &'a Arc<Monitor>,
    channel: &'a dyn Channel,
    cancel: &'a Cancel,
    timeouts: WatcherTimeouts,
    /// Who gave the last answer.
    answerer: Mutex<&'static str>,
}

impl<'a> FirstAnswer<'a> {
    /// An approver for one call.
    pub fn new(
        monitor: &'a Arc<Monitor>,
        channel: &'a dyn Channel,
        cancel: &'a Cancel,
    ) -> FirstAnswer<'a> {
        let answerer = Mutex::new(channel.answerer().name());
        let timeouts = WatcherTimeouts::default();
        FirstAnswer { monitor, channel, cancel, timeouts, answerer }
    }

    /// Sets how long it waits for somebody who looks.
    #[must_use]
    pub fn waiting(self, timeouts: WatcherTimeouts) -> FirstAnswer<'a> {
        FirstAnswer { timeouts, ..self }
    }

    fn put(&self, question: &Question<'_>, limit: Option<Duration>) -> Answer {
        let asked = Asked::open(self.monitor, question);
        // An earlier call has left it, and it was answered since.
        if let Some(settled) = asked.settled() {
            return self.use_answer(&asked, &settled);
        }
        let watch = |most: Duration| {
            if !self.monitor.is_watched() {
                return None;
            }
            let until = Instant::now() + limit.map_or(most, |limit| limit.min(most));
            asked.open.wait(until, CANCEL_INTERVAL, || !self.cancel.is_cancelled())
        };
        // A question while a command runs cannot end the call.
        let by_result = self.channel.asks_by_result() && limit.is_none();
        if by_result
            && !self.channel.has_answer(question)
            && let Some(settled) = watch(self.timeouts.before_result)
        {
            return self.use_answer(&asked, &settled);
        }
        let answer = self.channel.ask(question, &asked, limit);
        if let Some(settled) = asked.settled() {
            return self.use_answer(&asked, &settled);
        }
        if self.cancel.is_cancelled() {
            return self.give_up(&asked, Answerer::Cancelled, answer);
        }
        match answer {
            // The client has the question now, and both may answer it.
            Answer::NoApprover if by_result => {
                self.monitor.leave_question(&asked.open);
                answer
            }
            Answer::NoApprover if self.monitor.is_watched() => match watch(self.timeouts.alone) {
                Some(settled) => self.use_answer(&asked, &settled),
                None if self.cancel.is_cancelled() => {
                    self.give_up(&asked, Answerer::Cancelled, answer)
                }
                // The command that asks does not wait longer.
                None if limit.is_some() => {
                    let timeout = Answer::Unanswered("timeout".to_owned());
                    self.give_up(&asked, Answerer::Timeout, timeout)
                }
                None => {
                    self.monitor.leave_question(&asked.open);
                    Answer::LeftOpen(STILL_OPEN.to_owned())
                }
            },
            Answer::NoApprover | Answer::LeftOpen(_) | Answer::Unanswered(_) => {
                self.give_up(&asked, Answerer::Timeout, answer)
            }
            answer => match settled_by(&answer, self.channel.answerer()) {
                Some(settled) => self.settle(&asked, settled, answer),
                None => answer,
            },
        }
    }

    /// Nobody has answered, unless somebody does so now.
    fn give_up(&self, asked: &Asked, by: Answerer, answer: Answer) -> Answer {
        self.settle(asked, unanswered(by), answer)
    }

    /// Settles the question, and returns `answer` if nobody was faster.
    fn settle(&self, asked: &Asked, settled: Settled, answer: Answer) -> Answer {
        match self.monitor.settle(&asked.open, settled, nothing) {
            Err(SettleError::Before(before)) => self.use_answer(asked, &before),
            Ok(_) | Err(SettleError::Rule(_)) => {
                *self.answerer.lock() = self.channel.answerer().name();
                self.monitor.close_question(&asked.open);
                answer
            }
        }
    }

    fn use_answer(&self, asked: &Asked, settled: &Settled) -> Answer {
        *self.answerer.lock() = settled.by.name();
        self.monitor.close_question(&asked.open);
        answer_of(settled)
    }
}

impl Approver for FirstAnswer<'_> {
    fn ask(&self, question: &Question<'_>) -> Answer {
        self.put(question, None)
    }

    fn ask_within(&self, question: &Question<'_>, limit: Duration) -> Answer {
        self.put(question, Some(limit))
    }

    fn name(&self) -> &'static str {
        *self.answerer.lock()
    }
}
