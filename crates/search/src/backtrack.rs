//! Patterns that the linear engine does not have: look-around and references back.
//!
//! The engine for them backtracks, and a bound on its steps is no bound on its time or memory: one step may
//! scan a whole line, and a pattern may save thousands of positions at each. So it runs in a process that
//! can be ended ([`Process`]). That process reports how far it is. If it falls silent, the line it was at
//! is undecided, another process goes on behind that line, and the caller is told.

mod engine;
mod in_this_process;
mod pool;
mod wire;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use self::engine::answer_questions;
pub use self::in_this_process::InThisProcess;
use self::pool::Pool;
use self::wire::{Answer, Answers, Question};
use crate::deadline::Deadline;
use crate::line_matches::line_around;

/// A process works on one line no longer than this, by the clock: an ordinary line takes microseconds.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// Starts processes that run [`answer_questions`].
pub trait Processes: fmt::Debug + Send + Sync {
    /// Starts one. Where as many run as may, waits for one to end until `wait` says stop; without `wait`
    /// there is none.
    fn start(&self, wait: Option<&Deadline<'_>>) -> Result<Option<Box<dyn Process>>, String>;
}

/// A process that runs [`answer_questions`]. Dropping it ends it.
pub trait Process: fmt::Debug + Send {
    /// Sends a question and hands on what comes back, as it comes, until `take` answers that this is all.
    /// After any other end the process is of no use.
    fn ask(
        &mut self,
        question: [&[u8]; 2],
        longest_silence: Duration,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Unanswered>;
}

/// Why a question has no answer, or only the beginning of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The process said nothing for longer than it may.
    Silent,
    /// It ended: it needed too much memory, or something else ended it.
    Ended,
    /// The caller wants no answer any more.
    Stopped,
}

/// Why a pattern cannot be made ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unready {
    /// It is no pattern, for this reason.
    Wrong(String),
    /// Making it ready takes too much time or memory.
    TooLarge,
    /// There is no process for it.
    NoProcess(String),
}

/// What is known of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The pattern matches there.
    Match(Range<usize>),
    /// Nothing is known of this line; where matches go over lines, of nothing behind its beginning.
    Undecided(Range<usize>),
}

/// A pattern made ready, in one or more processes.
#[derive(Debug)]
pub(crate) struct Backtracker {
    pool: Pool,
}

impl Backtracker {
    /// Makes a pattern ready, in a first process.
    pub(crate) fn new(
        pattern: String,
        processes: &Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Backtracker, Unready> {
        Ok(Backtracker { pool: Pool::new(pattern, processes.clone(), stop)? })
    }

    /// Looks for the pattern, in each line or over their ends, and hands out what is found from front to
    /// back until `take` has enough, or `most` matches. Answers up to where the text was looked at: to its
    /// end, or as far as it was wanted, unless time was over before.
    pub(crate) fn look(
        &self,
        text: &[u8],
        multiline: bool,
        most: u64,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(Found) -> bool,
    ) -> usize {
        let mut look = Look { text, multiline, decided_to: 0, matches: 0, enough: false, take };
        let mut is_careful = false;
        while !look.enough && look.decided_to < text.len() {
            let Some(mut member) = self.pool.take(stop) else { return look.decided_to };
            let question = Question {
                multiline,
                is_careful,
                most: most.saturating_sub(look.matches),
                from: look.decided_to,
                text,
            };
            let Some(header) = question.header() else {
                look.undecided(text.len());
                break;
            };
            let mut answers = Answers::default();
            let asked = member.process.ask(
                [&header, text],
                LONGEST_SILENCE,
                stop,
                &mut |bytes: &[u8]| {
                    answers.feed(bytes);
                    answers.by_ref().any(|answer| look.is_last(answer))
                },
            );
            match asked {
                Ok(()) => {
                    self.pool.put_back(member);
                    break;
                }
                Err(Unanswered::Stopped) => {
                    self.pool.lose(member);
                    return look.decided_to.min(text.len());
                }
                Err(Unanswered::Silent | Unanswered::Ended) => {
                    self.pool.lose(member);
                    let line = look.line();
                    // Short lines are not reported one by one: which of them it was, is found out carefully.
                    if !is_careful && (multiline || line.len() < engine::LONG_LINE) {
                        is_careful = true;
                        continue;
                    }
                    is_careful = false;
                    look.undecided(if multiline { text.len() } else { line.end + 1 });
                }
            }
        }
        text.len()
    }
}

/// How far a look is.
struct Look<'a> {
    text: &'a [u8],
    multiline: bool,
    decided_to: usize,
    matches: u64,
    enough: bool,
    take: &'a mut dyn FnMut(Found) -> bool,
}

impl Look<'_> {
    /// Takes an answer; says whether it is the last that is of use.
    fn is_last(&mut self, answer: Answer) -> bool {
        match answer {
            // A process that a text has taken over may say anything, but not lead us astray.
            Answer::At(at) => self.decided_to = at.clamp(self.decided_to, self.text.len()),
            Answer::Match { .. } | Answer::GaveUp(_) if self.enough => {}
            Answer::Match { start, end } => {
                let start = start.clamp(self.decided_to, self.text.len());
                let place = start..end.clamp(start, self.text.len());
                self.matches += 1;
                self.decided_to = match self.multiline {
                    true => place.end.max(place.start + 1),
                    false => line_around(self.text, place.start).end + 1,
                };
                self.enough = !(self.take)(Found::Match(place));
            }
            Answer::GaveUp(at) => {
                self.decided_to = at.clamp(self.decided_to, self.text.len());
                let line = self.line();
                self.undecided(if self.multiline { self.text.len() } else { line.end + 1 });
            }
            Answer::Ready | Answer::Wrong(_) | Answer::Done => return true,
        }
        false
    }

    /// The line that is to be decided next.
    fn line(&self) -> Range<usize> {
        line_around(self.text, self.decided_to.min(self.text.len()))
    }

    /// Gives up on what is next, up to here.
    fn undecided(&mut self, up_to: usize) {
        let line = self.line();
        self.decided_to = up_to;
        self.enough |= !(self.take)(Found::Undecided(line));
    }
}

#[cfg(test)]
mod tests;
