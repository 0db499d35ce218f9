//! Limits the running jobs of several sessions together.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::error::JobError;
use crate::job::Job;

/// The maximum number of jobs with a running process, over all sessions that share it.
#[derive(Debug)]
pub struct RunningLimit {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Jobs that are being started.
    starting: usize,
    started: Vec<Weak<Job>>,
}

impl RunningLimit {
    /// Creates a limit without jobs.
    pub fn new(max: usize) -> Arc<RunningLimit> {
        Arc::new(RunningLimit { max, state: Mutex::default() })
    }

    /// Takes a place for a job that is about to start. Fails if there is none.
    pub(crate) fn reserve(self: &Arc<Self>) -> Result<ReservedPlace, JobError> {
        let mut state = self.state.lock();
        let runs = |job: &Weak<Job>| job.upgrade().is_some_and(|job| !job.snapshot().all_exited);
        state.started.retain(runs);
        let running = state.started.len() + state.starting;
        if running >= self.max {
            return Err(JobError::TooManyInAll(running));
        }
        state.starting += 1;
        Ok(ReservedPlace { limit: self.clone() })
    }
}

/// A place for a job that is being started, until dropped.
pub(crate) struct ReservedPlace {
    limit: Arc<RunningLimit>,
}

impl ReservedPlace {
    /// Gives the place to the job, which has it while one of its processes runs.
    pub(crate) fn give_to(&self, job: &Arc<Job>) {
        self.limit.state.lock().started.push(Arc::downgrade(job));
    }
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        self.limit.state.lock().starting -= 1;
    }
}
