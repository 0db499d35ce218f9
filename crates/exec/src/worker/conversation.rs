//! A worker that is asked several times.

use std::time::{Duration, Instant};

use super::error::{self, WorkerError};
use super::pipes::{AtEnd, Progress};
use super::{GLANCE, Running, Worker};

/// A worker that answers one question after the other and stays alive between them. Dropping it ends it,
/// whatever it is doing.
///
/// The limits on memory and on the processor hold for the whole life of the worker; `wall` and `output_bytes`
/// hold for the answer that is read at once.
#[derive(Debug)]
pub struct Conversation {
    worker: Worker,
    running: Option<Running>,
}

impl Worker {
    /// Starts it for several questions.
    pub fn converse(&self) -> Result<Conversation, WorkerError> {
        let running = Running::start(self, AtEnd::StayOpen)?;
        Ok(Conversation { worker: self.clone(), running: Some(running) })
    }
}

impl Conversation {
    /// Sends a question and gives what comes back to `take`, as it comes, until that answers that it is all.
    /// The worker may not be silent for longer than `longest_silence`. After an error it has ended, and every
    /// further question is an error.
    pub fn ask(
        &mut self,
        question: &[&[u8]],
        longest_silence: Duration,
        cancelled: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), WorkerError> {
        let asked = self.talk(question, longest_silence, cancelled, take);
        asked.map_err(|error| self.end().unwrap_or(error))
    }

    fn talk(
        &mut self,
        question: &[&[u8]],
        longest_silence: Duration,
        cancelled: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), WorkerError> {
        let max_output = self.worker.limits.output_bytes;
        let Some(running) = &mut self.running else { return Err(WorkerError::Cancelled) };
        let mut parts = question.iter().copied();
        let mut unwritten: &[u8] = &[];
        let mut moved = Instant::now();
        loop {
            if unwritten.is_empty() {
                unwritten = parts.next().unwrap_or_default();
            }
            if cancelled() {
                return Err(WorkerError::Cancelled);
            }
            let left = longest_silence.saturating_sub(moved.elapsed());
            if left.is_zero() {
                return Err(WorkerError::TimedOut);
            }
            let to_write = unwritten.len();
            let progress = running.pump(&mut unwritten, max_output, left.min(GLANCE))?;
            let answer = running.take_answer();
            if unwritten.len() < to_write || !answer.is_empty() {
                moved = Instant::now();
            }
            if !answer.is_empty() && take(&answer) {
                return Ok(());
            }
            if progress == Progress::Ended {
                return Err(WorkerError::Failed { code: 0, message: String::new() });
            }
        }
    }

    /// Ends it; answers how it had ended by itself, if it had.
    fn end(&mut self) -> Option<WorkerError> {
        let mut running = self.running.take()?;
        let had_ended = running.has_ended();
        let (_, complaint) = running.pipes.take();
        let status = running.end().ok()?;
        had_ended.then(|| error::of_ending(status, &complaint)).flatten()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.end();
    }
}
