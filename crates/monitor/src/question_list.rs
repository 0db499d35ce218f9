//! The questions of a server: open ones, answers that wait for their call to be repeated, and recently settled ones.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::open_question::OpenQuestion;
use crate::protocol::Question;

/// How long a question stays open after its call was denied, and how long its answer then waits for the same call.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// More questions than a person answers. Beyond that, the oldest are forgotten.
const MAX_LEFT_OPEN: usize = 100;

/// Size of the questions that are left, and of the settled ones, as JSON. The questions of running calls share a line
/// with the first, so it is far shorter.
const MAX_KEPT_BYTES: usize = 2 << 20;

/// Settled questions whose late answers are told who was first.
const MAX_SETTLED: usize = 100;

/// The questions.
#[derive(Debug, Default)]
pub(crate) struct QuestionList {
    last: u64,
    /// Calls wait for these, oldest first.
    asked: Vec<Arc<OpenQuestion>>,
    /// Open or answered after their calls were denied, with the time at which they are forgotten.
    left: Vec<(Instant, Arc<OpenQuestion>)>,
    settled: VecDeque<Arc<OpenQuestion>>,
}

impl QuestionList {
    /// A number for a new question.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds a question that a call waits for.
    pub(crate) fn add(&mut self, question: Arc<OpenQuestion>) {
        self.asked.push(question);
    }

    /// Takes back the same question that an earlier call of the same session has left, with its answer if there is
    /// one. An answer for one agent does not allow another agent the same.
    pub(crate) fn take_left(&mut self, same: &Question) -> Option<Arc<OpenQuestion>> {
        let now = Instant::now();
        let is_it = |(until, open): &(Instant, Arc<OpenQuestion>)| {
            let left = open.question();
            *until > now && (&left.session, &left.digest) == (&same.session, &same.digest)
        };
        let at = self.left.iter().position(is_it)?;
        let (_, question) = self.left.remove(at);
        Some(question)
    }

    /// The call no longer waits, but the question stays. Returns the older questions that are forgotten for it.
    pub(crate) fn leave(&mut self, question: &Arc<OpenQuestion>) -> Vec<Arc<OpenQuestion>> {
        self.asked.retain(|open| !Arc::ptr_eq(open, question));
        self.left.push((Instant::now() + KEPT_FOR, question.clone()));
        let excess = excess(self.left.iter().map(|(_, open)| open), MAX_LEFT_OPEN);
        self.left.drain(..excess).map(|(_, open)| open).collect()
    }

    /// The call has its answer.
    pub(crate) fn close(&mut self, question: &Arc<OpenQuestion>) {
        self.asked.retain(|open| !Arc::ptr_eq(open, question));
        self.left.retain(|(_, open)| !Arc::ptr_eq(open, question));
        self.settled.push_back(question.clone());
        let excess = excess(self.settled.iter(), MAX_SETTLED);
        self.settled.drain(..excess);
    }

    /// Takes the questions that nobody answered in time, and forgets answers that no call came back for.
    pub(crate) fn take_expired(&mut self) -> Vec<Arc<OpenQuestion>> {
        let now = Instant::now();
        let expired = self.left.extract_if(.., |(until, _)| *until <= now);
        let expired: Vec<_> = expired.map(|(_, open)| open).collect();
        expired.into_iter().filter(|open| open.settled().is_none()).collect()
    }

    /// The open questions, oldest first.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Arc<OpenQuestion>> {
        let left = self.left.iter().map(|(_, open)| open);
        left.chain(&self.asked).filter(|open| open.settled().is_none())
    }

    /// A question by its id, also a recently settled one.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<OpenQuestion>> {
        let left = self.left.iter().map(|(_, open)| open);
        let mut all = self.asked.iter().chain(left).chain(&self.settled);
        all.find(|open| open.question().id == id).cloned()
    }
}

/// How many of the first questions are too many, by number or by size. The last one always stays.
fn excess<'q>(
    questions: impl DoubleEndedIterator<Item = &'q Arc<OpenQuestion>> + ExactSizeIterator,
    most: usize,
) -> usize {
    let (count, mut bytes) = (questions.len(), 0_usize);
    let is_kept = |question: &&Arc<OpenQuestion>| {
        let is_last = bytes == 0;
        bytes = bytes.saturating_add(question.bytes());
        is_last || bytes <= MAX_KEPT_BYTES
    };
    count - questions.rev().take(most).take_while(is_kept).count()
}
