//! A worker that answers several questions.

use std::time::Duration;

use super::error::{self, WorkerError};
use super::idle_time::IdleTime;
use super::pipes::{AfterInput, Progress};
use super::{POLL_INTERVAL, RunningWorker, Worker};

/// A worker that answers one question after the other and stays alive between them. Dropping this ends it,
/// whatever it is doing.
///
/// The limits on memory and CPU time apply to the whole life of the worker. `output_bytes` applies to each
/// read of an answer; `wall` is not used.
#[derive(Debug)]
pub struct Conversation {
    worker: Worker,
    running: Option<RunningWorker>,
}

impl Worker {
    /// Starts it for several questions. Fails if the program cannot be started.
    pub fn start_conversation(&self) -> Result<Conversation, WorkerError> {
        let running = RunningWorker::start(self, AfterInput::StayOpen)?;
        Ok(Conversation { worker: self.clone(), running: Some(running) })
    }
}

impl Conversation {
    /// Sends a question and passes each piece of the answer to `take`, until that returns true. Fails if the
    /// worker neither reads nor writes for `idle_timeout`, without the time in which it waits for a processor. After an error the worker has ended, and every
    /// further question fails.
    pub fn ask(
        &mut self,
        question: &[&[u8]],
        idle_timeout: Duration,
        cancelled: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), WorkerError> {
        let answered = self.exchange(question, idle_timeout, cancelled, take);
        answered.map_err(|error| self.end().unwrap_or(error))
    }

    fn exchange(
        &mut self,
        question: &[&[u8]],
        idle_timeout: Duration,
        cancelled: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), WorkerError> {
        let max_output = self.worker.limits.output_bytes;
        let Some(running) = &mut self.running else { return Err(WorkerError::Cancelled) };
        let mut parts = question.iter().copied();
        let mut unwritten: &[u8] = &[];
        let mut idle: Option<IdleTime> = None;
        loop {
            if unwritten.is_empty() {
                unwritten = parts.next().unwrap_or_default();
            }
            if cancelled() {
                return Err(WorkerError::Cancelled);
            }
            if idle.as_ref().is_some_and(|idle| idle.is_over(idle_timeout)) {
                return Err(WorkerError::TimedOut);
            }
            let to_write = unwritten.len();
            let progress = running.pump(&mut unwritten, max_output, POLL_INTERVAL)?;
            let answer = running.take_output();
            if unwritten.len() < to_write || !answer.is_empty() {
                idle = None;
            } else if idle.is_none() {
                idle = Some(IdleTime::begin(running.pid));
            }
            if !answer.is_empty() && take(&answer) {
                return Ok(());
            }
            if progress == Progress::Ended {
                return Err(WorkerError::Failed { code: 0, message: String::new() });
            }
        }
    }

    /// Ends it. Returns its own error if it had already exited.
    fn end(&mut self) -> Option<WorkerError> {
        let mut running = self.running.take()?;
        let had_ended = running.has_ended();
        let (_, stderr) = running.pipes.take();
        let status = running.end().ok()?;
        had_ended.then(|| error::from_exit_status(status, &stderr)).flatten()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.end();
    }
}
