//! Opens questions, and settles each by its first answer.

use std::sync::Arc;
use std::time::Duration;

use toolcrib::{Answer, now_ms};

use crate::describe_question::describe_question;
use crate::messages::{GivenAnswer, RequestError, RequestErrorKind};
use crate::monitor::Monitor;
use crate::open_question::{OpenQuestion, SettleError};
use crate::protocol::{AnswerWord, Answerer, Event, Question, Settled, TimeLeft};
use crate::question_list::KEPT_FOR;

/// The longest approval for some minutes: a working day.
const MAX_MINUTES: u32 = 480;

/// Characters of a message to the agent.
const MAX_MESSAGE_CHARS: usize = 2_000;

impl Monitor {
    /// Opens a question, or returns the same one that an earlier call has left, which may have an answer.
    pub(crate) fn open_question(
        &self,
        question: &toolcrib::Question<'_>,
        client: Option<&str>,
    ) -> Arc<OpenQuestion> {
        let mut described = describe_question(question);
        // Only commands have a sandbox, and it may take a moment to describe.
        let sandbox = described.command.as_ref().map(|_| self.server().sandbox);
        let client = client.map(str::to_owned).or_else(|| self.client_name());
        if self.rules.is_none() {
            (described.always, described.always_directory, described.never) = (None, None, None);
        }
        self.expire_questions();
        self.update(|log| {
            if let Some(left) = log.questions.take_left(&described) {
                if left.settled().is_none() {
                    log.questions.add(left.clone());
                }
                left.set_call(self.names().call_id(question.call));
                let event = time_event(&left, TimeLeft::default());
                return (left, event);
            }
            let names = self.names();
            let opened = Arc::new(OpenQuestion::new(Question {
                id: format!("{}-q{}", names.id, log.questions.next_number()),
                call: names.call_id(question.call),
                opened: now_ms(),
                sandbox: sandbox.unwrap_or_default(),
                client,
                workspace: names.workspace.clone(),
                ..described
            }));
            log.questions.add(opened.clone());
            let event = Event::QuestionOpened(Box::new(opened.question().clone()));
            (opened, Some(event))
        })
    }

    /// The call waits for this time, and is denied then. If the question `stays`, it can be answered after that.
    pub(crate) fn set_call_wait(&self, question: &Arc<OpenQuestion>, wait: Duration, stays: bool) {
        let ends = now_ms().saturating_add(as_ms(wait));
        let expires = if stays { ends.saturating_add(as_ms(KEPT_FOR)) } else { ends };
        let (call_waits_until, expires) = (Some(ends), Some(expires));
        let time_left = TimeLeft { call_waits_until, expires, ..TimeLeft::default() };
        self.update(|_| ((), time_event(question, time_left)));
    }

    /// The call no longer waits, but the question can still be answered. `denied_after` is how long the call waited
    /// before it was denied, if it was.
    pub(crate) fn leave_question(
        &self,
        question: &Arc<OpenQuestion>,
        denied_after: Option<Duration>,
    ) {
        question.leave_shared();
        let expires = Some(now_ms().saturating_add(as_ms(KEPT_FOR)));
        let denied_after = denied_after.map(as_ms);
        let time_left =
            TimeLeft { call_waits_until: None, call_ended: true, denied_after, expires };
        let forgotten = self.update(|log| {
            let forgotten = log.questions.leave(question);
            let event = time_event(question, time_left);
            (forgotten, event)
        });
        for question in forgotten {
            let _ = self.settle(&question, unanswered(Answerer::Timeout), nothing);
        }
    }

    /// Settles a question, unless it is settled. `store` stores the rule of the answer, if it wins.
    pub(crate) fn settle<E>(
        &self,
        question: &Arc<OpenQuestion>,
        settled: Settled,
        store: impl FnOnce() -> Result<(), E>,
    ) -> Result<Settled, SettleError<E>> {
        let given = settled.clone();
        let settled = question.settle(settled, store)?;
        self.tell_settled(question, &settled);
        // Another machine was first.
        if settled == given { Ok(settled) } else { Err(SettleError::Before(settled)) }
    }

    /// Settles a question by its answer on another machine, if there is one.
    pub(crate) fn settle_by_shared(&self, question: &Arc<OpenQuestion>) {
        if let Some(settled) = question.settle_by_shared() {
            self.tell_settled(question, &settled);
        }
    }

    fn tell_settled(&self, question: &OpenQuestion, settled: &Settled) {
        let (id, settled) = (question.question().id.clone(), settled.clone());
        self.update(|_| ((), Some(Event::QuestionSettled { id, settled })));
    }

    /// The call has its answer and does not need the question any more.
    pub(crate) fn close_question(&self, question: &Arc<OpenQuestion>) {
        question.end_sharing();
        self.update(|log| (log.questions.close(question), None));
    }

    /// Settles the questions that nobody answered in time.
    pub(crate) fn expire_questions(&self) {
        let expired = self.update(|log| (log.questions.take_expired(), None));
        for question in expired {
            let _ = self.settle(&question, unanswered(Answerer::Timeout), nothing);
        }
    }

    /// An answer of a client of the socket.
    pub(crate) fn answer(&self, given: GivenAnswer) -> Result<Settled, RequestError> {
        let invalid = |message: &str| RequestError::new(RequestErrorKind::Invalid, message);
        let found = self.update(|log| (log.questions.find(&given.question), None));
        let missing = || RequestError::new(RequestErrorKind::NotFound, "there is no such question");
        let open = found.ok_or_else(missing)?;
        if open.question().digest != given.digest {
            return Err(invalid("the digest is not the one of this question"));
        }
        if !matches!(given.by, Answerer::Page | Answerer::Watch) {
            return Err(invalid("only a page or a watch answers here"));
        }
        let minutes = match (given.answer, given.minutes) {
            (AnswerWord::Minutes, Some(minutes)) if (1..=MAX_MINUTES).contains(&minutes) => {
                Some(minutes)
            }
            (AnswerWord::Minutes, _) => return Err(invalid("minutes must be from 1 to 480")),
            _ => None,
        };
        let question = open.question();
        let rules = match given.answer {
            AnswerWord::Always => Some(&question.always),
            AnswerWord::AlwaysDirectory => Some(&question.always_directory),
            AnswerWord::Never => Some(&question.never),
            _ => None,
        };
        let rules = match rules {
            None => None,
            Some(None) => return Err(invalid("no rule can be added for this question")),
            Some(Some(proposal)) => Some(proposal.toml.as_str()),
        };
        let message = given.message.filter(|message| !message.trim().is_empty());
        let settled = Settled {
            answer: given.answer,
            minutes,
            by: given.by,
            at: now_ms(),
            message: message.map(|text| text.chars().take(MAX_MESSAGE_CHARS).collect()),
        };
        let store = || match (rules, &self.rules) {
            (Some(rules), Some(store)) => store(rules),
            _ => Ok(()),
        };
        self.settle(&open, settled, store).map_err(|error| match error {
            SettleError::Before(settled) => RequestError {
                kind: RequestErrorKind::Conflict,
                message: format!("too late: {}", described(&settled)),
                settled: Some(settled),
            },
            SettleError::Rule(problem) => RequestError::new(RequestErrorKind::Io, problem),
        })
    }
}

/// Changes the time limits of an open question. Returns the event of the change.
fn time_event(question: &OpenQuestion, time_left: TimeLeft) -> Option<Event> {
    let is_changed = question.set_time_left(time_left.clone()) && question.settled().is_none();
    let id = question.question().id.clone();
    is_changed.then(|| Event::QuestionTime { id, call: question.call(), time_left })
}

fn as_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A question that needs no rule to be stored.
pub(crate) fn nothing() -> Result<(), String> {
    Ok(())
}

/// A question that nobody answered.
pub(crate) fn unanswered(by: Answerer) -> Settled {
    Settled { answer: AnswerWord::No, minutes: None, by, at: now_ms(), message: None }
}

/// An answer of the runtime in the form of the protocol. `None` if it is not an answer.
pub(crate) fn settled_by(answer: &Answer, by: Answerer) -> Option<Settled> {
    let (word, minutes, message) = match answer {
        Answer::Allow => (AnswerWord::Once, None, None),
        Answer::AllowForSession => (AnswerWord::Session, None, None),
        Answer::AllowFor(time) => {
            let minutes = u32::try_from(time.as_secs().div_ceil(60)).unwrap_or(u32::MAX);
            (AnswerWord::Minutes, Some(minutes), None)
        }
        Answer::AllowAlways => (AnswerWord::Always, None, None),
        Answer::AllowDirectoryAlways => (AnswerWord::AlwaysDirectory, None, None),
        Answer::Deny(message) => (AnswerWord::No, None, Some(message)),
        Answer::DenyAlways(message) => (AnswerWord::Never, None, Some(message)),
        Answer::NoApprover | Answer::LeftOpen(_) | Answer::Unanswered(_) => return None,
    };
    let message = message.filter(|message| !message.is_empty());
    let message = message.map(|text| text.chars().take(MAX_MESSAGE_CHARS).collect());
    Some(Settled { answer: word, minutes, by, at: now_ms(), message })
}

/// A settled question as an answer for the runtime.
pub(crate) fn answer_of(settled: &Settled) -> Answer {
    let message = settled.message.clone().unwrap_or_default();
    match (settled.by, settled.answer) {
        (Answerer::Timeout, _) => Answer::Unanswered("timeout".to_owned()),
        (Answerer::Withdrawn, _) => Answer::Unanswered("it was withdrawn".to_owned()),
        (Answerer::Cancelled, _) => Answer::Unanswered("the call was cancelled".to_owned()),
        (_, AnswerWord::Once) => Answer::Allow,
        (_, AnswerWord::Session) => Answer::AllowForSession,
        (_, AnswerWord::Minutes) => {
            Answer::AllowFor(Duration::from_secs(60 * u64::from(settled.minutes.unwrap_or(1))))
        }
        (_, AnswerWord::Always) => Answer::AllowAlways,
        (_, AnswerWord::AlwaysDirectory) => Answer::AllowDirectoryAlways,
        (_, AnswerWord::No) => Answer::Deny(message),
        (_, AnswerWord::Never) => Answer::DenyAlways(message),
    }
}

/// Who answered what, for people.
pub fn described(settled: &Settled) -> String {
    let place = match settled.by {
        Answerer::Terminal => "at the terminal",
        Answerer::Client => "in the client",
        Answerer::Program => "by the program",
        Answerer::Page => "on the page",
        Answerer::Watch => "in toolcrib watch",
        Answerer::Store => "in the store",
        Answerer::Timeout => return "it has expired".to_owned(),
        Answerer::Cancelled => return "its call was cancelled".to_owned(),
        Answerer::Withdrawn => return "it needs no answer any more".to_owned(),
    };
    let answer = match settled.answer {
        AnswerWord::Once => "yes".to_owned(),
        AnswerWord::Session => "yes, for this session".to_owned(),
        AnswerWord::Minutes => match settled.minutes.unwrap_or(1) {
            1 => "yes, for 1 minute".to_owned(),
            minutes => format!("yes, for {minutes} minutes"),
        },
        AnswerWord::Always => "yes, always".to_owned(),
        AnswerWord::AlwaysDirectory => "yes, always in this directory".to_owned(),
        AnswerWord::No => "no".to_owned(),
        AnswerWord::Never => "no, never".to_owned(),
    };
    format!("answered {place}: {answer}")
}
