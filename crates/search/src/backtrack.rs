//! Patterns that the linear engine does not support: look-around and backreferences.
//!
//! The engine for them backtracks, and a limit on its steps does not limit its time or memory: one step may
//! scan a whole line, and a pattern may save thousands of positions at each step. So the engine runs in a
//! process that can be killed ([`Process`]). That process reports its progress. If it stops reporting, its
//! current line is undecided, another process continues after that line, and the caller is informed.

mod engine;
mod in_this_process;
mod pool;
mod prefilter;
mod relaxed;
mod wire;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use self::engine::answer_questions;
pub use self::in_this_process::InThisProcess;
use self::pool::Pool;
use self::prefilter::Prefilter;
use self::wire::{Response, ResponseReader, SearchRequest};
use crate::deadline::Deadline;
use crate::line_around::line_around;

/// Limit of wall time for one line. An ordinary line takes microseconds.
const LINE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts processes that run [`answer_questions`].
pub trait Processes: fmt::Debug + Send + Sync {
    /// Starts a process. If the maximum number already run, waits until one of them ends or `wait` is over.
    /// Without `wait`, returns `Ok(None)` in that case.
    fn start(&self, wait: Option<&Deadline<'_>>) -> Result<Option<Box<dyn Process>>, String>;
}

/// A process that runs [`answer_questions`]. Dropping it kills it.
pub trait Process: fmt::Debug + Send {
    /// Sends a request and passes the response to `take`, as it arrives, until `take` returns true. After an
    /// `Err` the process cannot be used again.
    fn ask(
        &mut self,
        request: [&[u8]; 2],
        longest_silence: Duration,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Unanswered>;
}

/// Why a request has no complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The process sent nothing for longer than `longest_silence`.
    Silent,
    /// The process ended: it needed too much memory, or it was killed.
    Ended,
    /// The caller's deadline passed.
    Stopped,
}

/// Why a pattern cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompileError {
    /// The pattern is invalid, with the reason.
    Invalid(String),
    /// Compiling takes too much time or memory.
    TooLarge,
    /// No process could be started.
    NoProcess(String),
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The range of a match.
    Match(Range<usize>),
    /// The engine gave up on this line. If matches may span lines, everything after its beginning is
    /// undecided.
    Undecided(Range<usize>),
}

/// A pattern that is compiled in one or more processes.
#[derive(Debug)]
pub(crate) struct Backtracker {
    pool: Pool,
    /// Whether matches may span lines.
    multiline: bool,
    /// Excludes lines, or texts if matches may span lines.
    prefilter: Option<Prefilter>,
}

impl Backtracker {
    /// Compiles a pattern in a first process.
    pub(crate) fn new(
        pattern: String,
        multiline: bool,
        processes: &Arc<dyn Processes>,
        stop: &Deadline<'_>,
    ) -> Result<Backtracker, CompileError> {
        let (pool, relaxed) = Pool::new(pattern, processes.clone(), stop)?;
        Ok(Backtracker { pool, multiline, prefilter: Prefilter::new(&relaxed, multiline) })
    }

    /// The pattern that excludes lines or texts.
    pub(crate) fn prefilter(&self) -> Option<&Prefilter> {
        self.prefilter.as_ref()
    }

    /// Searches for the pattern, either in each line or across lines. Passes results to `take` from front to
    /// back, until `take` returns false or `max_matches` matches were found. Returns how far the text was searched:
    /// `text.len()`, unless the deadline passed first.
    pub(crate) fn search(
        &self,
        text: &[u8],
        max_matches: u64,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(Found) -> bool,
    ) -> usize {
        // The other engine sees replacement characters in place of invalid bytes. The linear engine does not.
        let prefilter = self.prefilter.as_ref().filter(|_| std::str::from_utf8(text).is_ok());
        let Some(prefilter) = prefilter else {
            return self.search_all(text, max_matches, stop, take);
        };
        if self.multiline {
            return if prefilter.may_match(text) {
                self.search_all(text, max_matches, stop, take)
            } else {
                text.len()
            };
        }
        let Some(lines) = prefilter.candidate_lines(text) else {
            return self.search_all(text, max_matches, stop, take);
        };
        let candidates = CandidateLines::of(text, &lines);
        let searched_to = self.search_all(&candidates.text, max_matches, stop, &mut |found| {
            take(match found {
                Found::Match(range) => Found::Match(candidates.place(&range)),
                Found::Undecided(line) => Found::Undecided(candidates.place(&line)),
            })
        });
        if searched_to < candidates.text.len() {
            candidates.place(&(searched_to..searched_to)).start
        } else {
            text.len()
        }
    }

    /// Searches without the prefilter.
    fn search_all(
        &self,
        text: &[u8],
        max_matches: u64,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(Found) -> bool,
    ) -> usize {
        let multiline = self.multiline;
        let mut progress =
            SearchProgress { text, multiline, decided_to: 0, matches: 0, enough: false, take };
        let mut report_every_line = false;
        while !progress.enough && progress.decided_to < text.len() {
            let Some(mut process) = self.pool.acquire(stop) else { return progress.decided_to };
            let request = SearchRequest {
                multiline,
                report_every_line,
                max_matches: max_matches.saturating_sub(progress.matches),
                from: progress.decided_to,
                text,
            };
            let Some(header) = request.header() else {
                progress.give_up_until(text.len());
                break;
            };
            let mut responses = ResponseReader::default();
            let outcome = process.connection.ask(
                [&header, text],
                LINE_TIMEOUT,
                stop,
                &mut |bytes: &[u8]| {
                    responses.feed(bytes);
                    responses.by_ref().any(|response| progress.handle(response))
                },
            );
            match outcome {
                Ok(()) => {
                    self.pool.release(process);
                    break;
                }
                Err(Unanswered::Stopped) => {
                    self.pool.discard(process);
                    return progress.decided_to.min(text.len());
                }
                Err(Unanswered::Silent | Unanswered::Ended) => {
                    self.pool.discard(process);
                    let line = progress.line();
                    // Progress is not reported for each short line. A second run that reports every line
                    // finds the one that failed.
                    if !report_every_line && (multiline || line.len() < engine::LONG_LINE_BYTES) {
                        report_every_line = true;
                        continue;
                    }
                    report_every_line = false;
                    progress.give_up_until(if multiline { text.len() } else { line.end + 1 });
                }
            }
        }
        text.len()
    }
}

/// Some lines of a text, as a text of their own.
struct CandidateLines {
    text: Vec<u8>,
    /// The start of each line, here and in the whole text.
    starts: Vec<(usize, usize)>,
    /// The length of the whole text.
    whole: usize,
}

impl CandidateLines {
    fn of(text: &[u8], lines: &[Range<usize>]) -> CandidateLines {
        let mut candidates =
            CandidateLines { text: Vec::new(), starts: Vec::new(), whole: text.len() };
        for line in lines {
            candidates.starts.push((candidates.text.len(), line.start));
            candidates.text.extend_from_slice(&text[line.clone()]);
            candidates.text.push(b'\n');
        }
        candidates
    }

    /// The place in the whole text of a range within one line. The other process may send any range.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        let line = self.starts.partition_point(|(start, _)| *start <= range.start);
        let (here, there) = self.starts[line.saturating_sub(1)];
        let place = |at: usize| (at.saturating_sub(here) + there).min(self.whole);
        place(range.start)..place(range.end)
    }
}

/// The state of a search.
struct SearchProgress<'a> {
    text: &'a [u8],
    multiline: bool,
    decided_to: usize,
    matches: u64,
    enough: bool,
    take: &'a mut dyn FnMut(Found) -> bool,
}

impl SearchProgress<'_> {
    /// Handles a response. Returns whether it is the last one.
    fn handle(&mut self, response: Response) -> bool {
        match response {
            // A process that a malicious text has taken over may send anything, so the positions are clamped.
            Response::DecidedTo(at) => self.decided_to = at.clamp(self.decided_to, self.text.len()),
            Response::Match { .. } | Response::GaveUp(_) if self.enough => {}
            Response::Match { start, end } => {
                let start = start.clamp(self.decided_to, self.text.len());
                let range = start..end.clamp(start, self.text.len());
                self.matches += 1;
                self.decided_to = if self.multiline {
                    range.end.max(range.start + 1)
                } else {
                    line_around(self.text, range.start).end + 1
                };
                self.enough = !(self.take)(Found::Match(range));
            }
            Response::GaveUp(at) => {
                self.decided_to = at.clamp(self.decided_to, self.text.len());
                let line = self.line();
                self.give_up_until(if self.multiline { self.text.len() } else { line.end + 1 });
            }
            Response::Ready(_) | Response::Invalid(_) | Response::Done => return true,
        }
        false
    }

    /// The next line to be decided.
    fn line(&self) -> Range<usize> {
        line_around(self.text, self.decided_to.min(self.text.len()))
    }

    /// Reports the next line as undecided and continues at `up_to`.
    fn give_up_until(&mut self, up_to: usize) {
        let line = self.line();
        self.decided_to = up_to;
        self.enough |= !(self.take)(Found::Undecided(line));
    }
}

#[cfg(test)]
mod tests;
