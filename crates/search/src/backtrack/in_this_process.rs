//! Matching without a separate process, for programs that trust their patterns, and for tests.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::{Process, Processes, Unanswered};
use crate::deadline::Deadline;

/// Matches in the calling thread. Only the engine's step limit applies. Time and memory are not limited.
#[derive(Debug, Clone, Copy, Default)]
pub struct InThisProcess;

impl InThisProcess {
    /// A shared handle, as patterns require it.
    pub fn shared() -> Arc<dyn Processes> {
        Arc::new(InThisProcess)
    }
}

impl Processes for InThisProcess {
    fn start(&self, _wait: Option<&Deadline<'_>>) -> Result<Option<Box<dyn Process>>, String> {
        Ok(Some(Box::new(Engine::default())))
    }
}

impl Process for Engine {
    fn ask(
        &mut self,
        question: [&[u8]; 2],
        _longest_silence: Duration,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Unanswered> {
        if stop.is_over() {
            return Err(Unanswered::Stopped);
        }
        let mut response = Vec::new();
        let served = self.serve_one(&mut question.concat().as_slice(), &mut response);
        if served.is_ok() && take(&response) { Ok(()) } else { Err(Unanswered::Ended) }
    }
}
