//! No process at all: for programs that trust their patterns, and for tests.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::{Process, Processes, Unanswered};
use crate::deadline::Deadline;

/// Matches in the thread that asks. Only the engine's bound on its steps holds here; nothing bounds time or
/// memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct InThisProcess;

impl InThisProcess {
    /// In the form in which patterns take it.
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
        if stop.now() {
            return Err(Unanswered::Stopped);
        }
        let mut answer = Vec::new();
        let asked = self.answer(&mut question.concat().as_slice(), &mut answer);
        match asked.is_ok() && take(&answer) {
            true => Ok(()),
            false => Err(Unanswered::Ended),
        }
    }
}
