//! Asks everybody who can answer a question, and uses the first answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcrib::{Answer, Approver, Cancel, PendingQuestion, Question};

use crate::answers::{answer_of, nothing, settled_by, unanswered};
use crate::asking::{Asked, Channel};
use crate::monitor::Monitor;
use crate::open_question::SettleError;
use crate::protocol::{Answerer, Settled};
use crate::question_list::KEPT_FOR;
use crate::shared_questions::{SharedCall, SharedState};

/// How long a call waits for the answer of a viewer.
#[derive(Debug, Clone, Copy)]
pub struct ViewerTimeouts {
    /// If its client cannot be asked. Clients give up after 60 s.
    pub alone: Duration,
    /// Before it returns the question to its client.
    pub before_result: Duration,
}

impl Default for ViewerTimeouts {
    fn default() -> Self {
        let (alone, before_result) = (Duration::from_secs(50), Duration::from_secs(20));
        ViewerTimeouts { alone, before_result }
    }
}

/// How often a waiting call checks whether its question is still needed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The sentence of a denial whose question can still be answered.
const STILL_OPEN: &str = "The question is still open on the page; after the user has answered it there, repeat the call.";

/// How long asking waits for the place where other machines answer: the same call may have an answer there.
const SHARED_WAIT: Duration = Duration::from_secs(1);

/// The same if nobody else can be asked: the first connection may take some time.
const SHARED_WAIT_ALONE: Duration = Duration::from_secs(5);

/// Asks through a channel, at the monitor's socket and on other machines at once.
pub struct FirstAnswer<'a> {
    monitor: &'a Arc<Monitor>,
    channel: &'a dyn Channel,
    cancel: &'a Cancel,
    timeouts: ViewerTimeouts,
    /// The name of the client that made the call, if it is known.
    client: Option<&'a str>,
    /// Where other machines can answer.
    shared: Option<SharedCall<'a>>,
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
        let timeouts = ViewerTimeouts::default();
        let (client, shared) = (None, None);
        FirstAnswer { monitor, channel, cancel, timeouts, client, shared, answerer }
    }

    /// Sets the name of the client that made the call. Several clients may share a server.
    #[must_use]
    pub fn of_client(self, client: Option<&'a str>) -> FirstAnswer<'a> {
        FirstAnswer { client, ..self }
    }

    /// Sets how long it waits for a viewer.
    #[must_use]
    pub fn waiting(self, timeouts: ViewerTimeouts) -> FirstAnswer<'a> {
        FirstAnswer { timeouts, ..self }
    }

    /// Also lets other machines answer.
    #[must_use]
    pub fn sharing(self, shared: Option<SharedCall<'a>>) -> FirstAnswer<'a> {
        FirstAnswer { shared, ..self }
    }

    /// Opens the question, and withdraws it once it is not needed.
    fn put(&self, pending: &PendingQuestion<'_>) -> Option<Answer> {
        let mut asked = Asked::open_for(self.monitor, pending.question(), self.client);
        // An earlier call has left it, and it was answered since.
        if let Some(settled) = asked.settled() {
            if asked.open.take_left_answer() {
                return self.use_answer(&asked, &settled);
            }
            self.monitor.close_question(&asked.open);
            asked = Asked::open_for(self.monitor, pending.question(), self.client);
        }
        if let Some(shared) = &self.shared {
            let expires_in = pending.limit().map_or(KEPT_FOR, |limit| limit.min(KEPT_FOR));
            let roots = self.monitor.roots();
            asked.open.share(shared.put(pending.question(), &roots, expires_in));
        }
        if let Some(limit) = pending.limit() {
            self.monitor.set_call_wait(&asked.open, limit, false);
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watching = thread::Builder::new().name("monitor question".to_owned());
            // Without the thread, the question stays until it is answered.
            let _ =
                watching.spawn_scoped(scope, || self.withdraw_unneeded(pending, &asked, &is_over));
            let answer = self.ask_everybody(pending, &asked);
            is_over.store(true, Ordering::Release);
            asked.open.wake();
            answer
        })
    }

    /// Settles the question when it is not needed any more, unless it is over before.
    fn withdraw_unneeded(
        &self,
        pending: &PendingQuestion<'_>,
        asked: &Asked,
        is_over: &AtomicBool,
    ) {
        let goes_on = || !is_over.load(Ordering::Acquire);
        while pending.is_needed() {
            self.monitor.settle_by_shared(&asked.open);
            let until = Instant::now() + CHECK_INTERVAL;
            if asked.open.wait(until, CHECK_INTERVAL, goes_on).is_some() || !goes_on() {
                return;
            }
        }
        let by = if self.cancel.is_cancelled() { Answerer::Cancelled } else { Answerer::Withdrawn };
        // An answer may have been faster.
        let _ = self.monitor.settle(&asked.open, unanswered(by), nothing);
    }

    fn ask_everybody(&self, pending: &PendingQuestion<'_>, asked: &Asked) -> Option<Answer> {
        let (question, limit) = (pending.question(), pending.limit());
        // A question while a command runs cannot end the call.
        let by_result = self.channel.asks_by_result() && limit.is_none();
        // The same call on another machine may have left an answer: then nobody is asked.
        if asked.open.known_shared_state(SHARED_WAIT) == Some(SharedState::Answered) {
            self.monitor.settle_by_shared(&asked.open);
        }
        if let Some(settled) = asked.settled() {
            return self.use_answer(asked, &settled);
        }
        if by_result
            && !self.channel.has_answer(question)
            && let Some(settled) = self.wait_for_viewer(asked, self.timeouts.before_result)
        {
            return self.use_answer(asked, &settled);
        }
        let answer = self.ask_channel(pending, asked);
        if let Some(settled) = asked.settled() {
            return self.use_answer(asked, &settled);
        }
        if self.cancel.is_cancelled() {
            return self.give_up(asked, Answerer::Cancelled, answer);
        }
        match answer {
            // The client has the question now, and both may answer it.
            Answer::NoApprover if by_result => {
                self.monitor.leave_question(&asked.open, None);
                Some(answer)
            }
            Answer::NoApprover if self.can_be_answered(asked) => self.ask_viewer(asked, limit),
            Answer::NoApprover => {
                let answer = match asked.open.shared_state() {
                    Some(SharedState::Unavailable(why)) => Answer::LeftOpen(unshared(&why)),
                    Some(SharedState::Unknown) => Answer::LeftOpen(unshared("it does not answer")),
                    _ => answer,
                };
                self.give_up(asked, Answerer::Timeout, answer)
            }
            Answer::LeftOpen(_) | Answer::Unanswered(_) => {
                self.give_up(asked, Answerer::Timeout, answer)
            }
            answer => match settled_by(&answer, self.channel.answerer()) {
                Some(settled) => self.settle(asked, settled, answer),
                None => Some(answer),
            },
        }
    }

    /// Asks the channel, in turn with other questions of the session if it shows only one.
    fn ask_channel(&self, pending: &PendingQuestion<'_>, asked: &Asked) -> Answer {
        let began = Instant::now();
        let is_open = || asked.settled().is_none() && !self.cancel.is_cancelled();
        let in_turn = self.channel.asks_one_at_a_time();
        let turn = in_turn.then(|| pending.wait_for_turn(is_open));
        if matches!(turn, Some(None)) || !is_open() {
            return Answer::NoApprover;
        }
        let limit = pending.limit().map(|limit| limit.saturating_sub(began.elapsed()));
        self.channel.ask(pending.question(), asked, limit)
    }

    /// Whether a viewer or another machine can answer it.
    fn can_be_answered(&self, asked: &Asked) -> bool {
        let is_shared = || {
            let state = asked.open.known_shared_state(SHARED_WAIT_ALONE);
            matches!(state, Some(SharedState::Open(_) | SharedState::Answered))
        };
        self.monitor.finds_active_viewer() || is_shared()
    }

    /// Nobody but a viewer and other machines can be asked.
    fn ask_viewer(&self, asked: &Asked, limit: Option<Duration>) -> Option<Answer> {
        let most = limit.map_or(self.timeouts.alone, |limit| limit.min(self.timeouts.alone));
        if limit.is_none() {
            self.monitor.set_call_wait(&asked.open, most, true);
        }
        let has_viewer = self.monitor.has_active_viewer();
        // Taken before the wait, which holds the lock of the question while it checks whether to go on.
        let shared = asked.open.shared();
        let has_expired =
            || shared.as_ref().is_some_and(|shared| shared.state() == SharedState::Expired);
        let goes_on = || !self.cancel.is_cancelled() && (has_viewer || !has_expired());
        if let Some(settled) = asked.open.wait(Instant::now() + most, CHECK_INTERVAL, goes_on) {
            return self.use_answer(asked, &settled);
        }
        if self.cancel.is_cancelled() {
            return self.give_up(asked, Answerer::Cancelled, Answer::NoApprover);
        }
        if limit.is_some() || (has_expired() && !has_viewer) {
            // The command that asks does not wait longer.
            let timeout = Answer::Unanswered("timeout".to_owned());
            return self.give_up(asked, Answerer::Timeout, timeout);
        }
        let sentence = match asked.open.shared_state() {
            Some(SharedState::Open(id)) => still_open_as(&id),
            Some(SharedState::Unavailable(why)) if !has_viewer => unshared(&why),
            _ => STILL_OPEN.to_owned(),
        };
        self.monitor.leave_question(&asked.open, Some(most));
        Some(Answer::LeftOpen(sentence))
    }

    /// Waits for an answer at the socket, if a viewer is connected.
    fn wait_for_viewer(&self, asked: &Asked, most: Duration) -> Option<Settled> {
        if !self.monitor.has_active_viewer() {
            return None;
        }
        let goes_on = || !self.cancel.is_cancelled();
        asked.open.wait(Instant::now() + most, CHECK_INTERVAL, goes_on)
    }

    /// Settles the question without an answer, unless one comes now.
    fn give_up(&self, asked: &Asked, by: Answerer, answer: Answer) -> Option<Answer> {
        self.settle(asked, unanswered(by), answer)
    }

    /// Settles the question, and returns `answer` if no other answer was first.
    fn settle(&self, asked: &Asked, settled: Settled, answer: Answer) -> Option<Answer> {
        match self.monitor.settle(&asked.open, settled, nothing) {
            Err(SettleError::Before(before)) => self.use_answer(asked, &before),
            Ok(_) | Err(SettleError::Rule(_)) => {
                *self.answerer.lock() = self.channel.answerer().name();
                self.monitor.close_question(&asked.open);
                Some(answer)
            }
        }
    }

    /// The answer that settled the question. `None` if it was withdrawn.
    fn use_answer(&self, asked: &Asked, settled: &Settled) -> Option<Answer> {
        *self.answerer.lock() = settled.by.name();
        if settled.by == Answerer::Store && self.cancel.is_cancelled() {
            asked.open.give_back_answer();
        }
        self.monitor.close_question(&asked.open);
        (settled.by != Answerer::Withdrawn).then(|| answer_of(settled))
    }

    fn put_alone(&self, question: &Question<'_>, limit: Option<Duration>) -> Answer {
        let answer = self.put(&PendingQuestion::alone(question, limit));
        // Such a question is never withdrawn.
        answer.unwrap_or_else(|| Answer::Unanswered("withdrawn".to_owned()))
    }
}

impl Approver for FirstAnswer<'_> {
    fn ask(&self, question: &Question<'_>) -> Answer {
        self.put_alone(question, None)
    }

    fn ask_within(&self, question: &Question<'_>, limit: Duration) -> Answer {
        self.put_alone(question, Some(limit))
    }

    fn ask_pending(&self, pending: &PendingQuestion<'_>) -> Option<Answer> {
        self.put(pending)
    }

    fn name(&self) -> &'static str {
        *self.answerer.lock()
    }
}

/// The sentence of a denial whose question can still be answered in the store.
fn still_open_as(id: &str) -> String {
    format!(
        "The question is still open as {id} in the store; after the operator has answered it with `toolcrib store approve`, repeat the call."
    )
}

/// The sentence of a denial whose question is not in the store.
fn unshared(why: &str) -> String {
    format!("The question is not in the store, where others could answer it: {why}.")
}
