//! Helper processes that match backtracking patterns.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_exec::{Conversation, WorkerError, WorkerLimits, WorkerSlot, WorkerSlots};
use toolcrib_search::{Deadline, Process, Processes, Unanswered};

use super::{MATCH, worker};
use crate::cx::Cx;

/// Limit for all searches together.
static MATCHERS: WorkerSlots = WorkerSlots::new(8);

/// Resources of a matcher: the file and the state of the pattern. Each question carries its own time limit; the
/// CPU limit ends a process whose host was killed.
const LIMITS: WorkerLimits = WorkerLimits {
    memory_bytes: 1 << 30,
    cpu_seconds: 60,
    wall: Duration::from_secs(60),
    output_bytes: 16 << 20,
};

/// Starts matching processes if the host has a helper.
#[derive(Debug)]
pub(crate) struct MatchingProcesses {
    program: Option<PathBuf>,
}

impl MatchingProcesses {
    pub(crate) fn of(cx: &Cx<'_>) -> Arc<dyn Processes> {
        let program = cx.helper().map(ToOwned::to_owned);
        Arc::new(MatchingProcesses { program })
    }
}

impl Processes for MatchingProcesses {
    fn start(&self, wait: Option<&Deadline<'_>>) -> Result<Option<Box<dyn Process>>, String> {
        let Some(program) = &self.program else {
            return Err("this host has no helper process to match it".to_owned());
        };
        let place = match wait {
            Some(stop) => MATCHERS.take(&|| stop.is_over()),
            None => MATCHERS.try_take(),
        };
        let Some(place) = place else { return Ok(None) };
        let conversation = worker(program, vec![MATCH.to_owned()], LIMITS).start_conversation();
        let conversation = conversation.map_err(|error| error.to_string())?;
        Ok(Some(Box::new(Matcher { conversation, _place: place })))
    }
}

/// A matching process. It ends before its slot is released.
#[derive(Debug)]
struct Matcher {
    conversation: Conversation,
    _place: WorkerSlot<'static>,
}

impl Process for Matcher {
    fn ask(
        &mut self,
        question: [&[u8]; 2],
        longest_silence: Duration,
        stop: &Deadline<'_>,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Unanswered> {
        let asked = self.conversation.ask(&question, longest_silence, &|| stop.is_over(), take);
        asked.map_err(|error| match error {
            WorkerError::Cancelled => Unanswered::Stopped,
            WorkerError::TimedOut => Unanswered::Silent,
            _ => Unanswered::Ended,
        })
    }
}
