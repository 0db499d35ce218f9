//! The jobs of a session, and the state that one command leaves to the next.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use toolcrib_exec::{Environment, Job, Jobs};
use toolcrib_text::Secrets;

use super::{Variables, merged};
use crate::command_changes::CommandChanges;
use crate::network::SessionConnections;

/// Half of what a program usually gets from the kernel. Bounds the environment that a session carries.
const MAX_CARRIED_BYTES: usize = 1 << 20;

/// The kernel's limit for one variable with its name, `=` and the final NUL. No program starts with a longer one.
const MAX_VARIABLE_BYTES: usize = 128 << 10;

/// The jobs of a session, and the state carried from one command to the next.
pub(crate) struct SessionShell {
    jobs: Jobs,
    /// Hosts by name, if commands reach listed hosts only.
    network: Option<Arc<SessionConnections>>,
    carried: Mutex<Carried>,
    known_secrets: Mutex<Option<KnownSecrets>>,
    /// By job id. A job has a record while [`Jobs`] remembers it.
    records: Mutex<HashMap<String, JobRecord>>,
    explained_sandbox: AtomicBool,
}

/// What replies need to know about a job, besides the job itself.
#[derive(Debug, Default)]
struct JobRecord {
    read: ReadPositions,
    /// Whether it continued after a reply, and no reply has told how it ended.
    is_awaited: bool,
    /// Its changes, if they are captured.
    changes: Option<Arc<CommandChanges>>,
}

/// Positions up to which the streams of a job were read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadPositions {
    pub(crate) output: u64,
    /// For stderr that is separate.
    pub(crate) errors: u64,
}

/// State carried to the next command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Carried {
    /// Working directory at the end, inside a root.
    pub(crate) directory: Option<PathBuf>,
    /// Exported variables.
    pub(crate) environment: Option<Arc<Variables>>,
    /// Whether the variables include the login environment.
    pub(crate) with_login: bool,
}

/// The secrets of a session, and the variables in which they were found. To find them takes longer than a small
/// call.
struct KnownSecrets {
    login: Option<Arc<Variables>>,
    carried: Option<Arc<Variables>>,
    secrets: Secrets,
}

impl Carried {
    /// Environment of the next command. Adds the login environment once it is loaded.
    pub(crate) fn environment_with(self, base: &Environment, with_login: bool) -> Variables {
        match self.environment {
            None => base.variables.clone(),
            Some(carried) if with_login && !self.with_login => {
                merged(carried.to_vec(), base.variables.clone())
            }
            Some(carried) => carried.to_vec(),
        }
    }
}

/// Removes the variables that no program can get, and the largest ones until the others fit together. Returns their
/// names.
fn remove_too_large(environment: &mut Variables) -> Vec<OsString> {
    let bytes = |(name, value): &(OsString, OsString)| name.len() + value.len() + 2;
    let mut sizes: Vec<usize> = environment.iter().map(bytes).collect();
    sizes.sort_unstable();
    let mut total: usize = sizes.iter().sum();
    let mut limit = MAX_VARIABLE_BYTES;
    while let Some(largest) = sizes.pop().filter(|_| total > MAX_CARRIED_BYTES) {
        total -= largest;
        limit = limit.min(largest - 1);
    }
    let too_large = environment.extract_if(.., |variable| bytes(variable) > limit);
    too_large.map(|(name, _)| name).collect()
}

fn is_same(one: &Option<Arc<Variables>>, other: &Option<Arc<Variables>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl SessionShell {
    pub(super) fn new(jobs: Jobs, network: Option<Arc<SessionConnections>>) -> SessionShell {
        SessionShell {
            jobs,
            network,
            carried: Mutex::default(),
            known_secrets: Mutex::default(),
            records: Mutex::default(),
            explained_sandbox: AtomicBool::new(false),
        }
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Returns `true` once: for the command whose reply explains the sandbox of the session.
    pub(crate) fn claim_sandbox_explanation(&self) -> bool {
        !self.explained_sandbox.swap(true, Ordering::Relaxed)
    }

    /// Hosts by name, if commands reach listed hosts only.
    pub(crate) fn network(&self) -> Option<&Arc<SessionConnections>> {
        self.network.as_ref()
    }

    pub(crate) fn carried(&self) -> Carried {
        self.carried.lock().clone()
    }

    pub(crate) fn carry_directory(&self, directory: PathBuf) {
        self.carried.lock().directory = Some(directory);
    }

    /// Stores the environment. Returns the names of variables that are too large for it.
    pub(crate) fn carry_environment(
        &self,
        mut environment: Variables,
        with_login: bool,
    ) -> Vec<OsString> {
        let too_large = remove_too_large(&mut environment);
        let mut carried = self.carried.lock();
        // Most commands change nothing, and the secrets in it stay known.
        if carried.environment.as_deref() != Some(&environment) {
            carried.environment = Some(Arc::new(environment));
        }
        carried.with_login = with_login;
        too_large
    }

    /// The secrets in the login environment and in the exported variables. `find` finds them if one of the two is new.
    pub(super) fn secrets(
        &self,
        login: Option<Arc<Variables>>,
        find: impl FnOnce(Option<&Variables>, Option<&Variables>) -> Secrets,
    ) -> Secrets {
        let carried = self.carried.lock().environment.clone();
        let mut known = self.known_secrets.lock();
        if let Some(known) = &*known
            && is_same(&known.login, &login)
            && is_same(&known.carried, &carried)
        {
            return known.secrets.clone();
        }
        let secrets = find(login.as_deref(), carried.as_deref());
        *known = Some(KnownSecrets { login, carried, secrets: secrets.clone() });
        secrets
    }

    /// The changes of a job, if they are captured.
    pub(crate) fn changes_of(&self, id: &str) -> Option<Arc<CommandChanges>> {
        self.records.lock().get(id)?.changes.clone()
    }

    /// The running job that may be changing a file.
    pub(crate) fn job_changing(&self, path: &Path) -> Option<String> {
        let records = self.records.lock();
        let is_changing = |record: &JobRecord| {
            record.changes.as_ref().is_some_and(|changes| changes.may_be_changing(path))
        };
        records.iter().find(|(_, record)| is_changing(record)).map(|(id, _)| id.clone())
    }

    /// Adds the record of a job that was started.
    pub(crate) fn add_job(&self, id: &str, changes: Option<Arc<CommandChanges>>) {
        let mut records = self.records.lock();
        // The oldest jobs are forgotten when new ones start. Their changes have been reported.
        records.retain(|id, _| self.jobs.get(id).is_some());
        records.insert(id.to_owned(), JobRecord { changes, ..JobRecord::default() });
    }

    /// Positions up to which the output of a job was read.
    pub(crate) fn read_positions(&self, id: &str) -> ReadPositions {
        self.records.lock().get(id).map(|record| record.read).unwrap_or_default()
    }

    pub(crate) fn set_read_positions(&self, id: &str, read: ReadPositions) {
        if let Some(record) = self.records.lock().get_mut(id) {
            record.read = read;
        }
    }

    /// Marks a job as one that continues after the reply.
    pub(crate) fn await_end(&self, id: &str) {
        if let Some(record) = self.records.lock().get_mut(id) {
            record.is_awaited = true;
        }
    }

    /// Marks the end of a job as told.
    pub(crate) fn end_is_told(&self, id: &str) {
        if let Some(record) = self.records.lock().get_mut(id) {
            record.is_awaited = false;
        }
    }

    /// The jobs that continued after a reply and have ended, each once.
    pub(crate) fn take_ended(&self) -> Vec<Arc<Job>> {
        let mut ended = Vec::new();
        for (id, record) in self.records.lock().iter_mut().filter(|(_, record)| record.is_awaited) {
            let job = self.jobs.get(id).filter(|job| !job.snapshot().status.is_running());
            record.is_awaited = job.is_none();
            ended.extend(job);
        }
        ended.sort_by_key(|job| job.created());
        ended
    }

    /// Forgets a job, unless one of its processes still runs.
    pub(crate) fn forget(&self, id: &str) {
        self.jobs.forget(id);
        self.records.lock().retain(|id, _| self.jobs.get(id).is_some());
    }
}
