//! The commands of one session: those that run, and those that have ended and are still remembered.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use crate::command::Command;
use crate::error::JobError;
use crate::guard::Guard;
use crate::job::{Job, JobIds, Status};
use crate::launch::Launcher;
use crate::output_buffer::{Log, LogLimits, LogRoom};
use crate::poller::{Poller, Supervision};
use crate::sandbox::level::{Enforced, Level};
use crate::sandbox::namespaces::Space;
use crate::sandbox::{Confinement, Sandbox};
use crate::sandbox_probe;
use crate::session_tmp::SessionTmp;
use crate::shim_pool::Keepers;
use crate::supervise::caller::stand_alone;
use crate::wire::Ending;

/// What the id of a job begins with; a number follows that counts the jobs of the session.
const ID_PREFIX: &str = "sh_";

/// How long a keeper may take to say whether the shell runs. It takes a millisecond; a machine that
/// swaps takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts commands for any number of sessions; one thread attends to all of them.
#[derive(Debug)]
pub struct Shells {
    keepers: Keepers,
    room: Arc<LogRoom>,
    poller: Poller,
    supervisor: Arc<Poller>,
    /// The newest version of Landlock that may be used.
    landlock: i64,
    enforced: OnceLock<Enforced>,
}

impl Shells {
    /// Nothing is started before the first command.
    pub fn new(launcher: Launcher, logs: LogLimits) -> Arc<Shells> {
        Shells::with_landlock(i64::MAX, launcher, logs)
    }

    /// The same with no newer version of Landlock than this, as on an older system.
    pub fn with_landlock(landlock: i64, launcher: Launcher, logs: LogLimits) -> Arc<Shells> {
        let poller = Poller::new("toolcrib-jobs", || Ok(()));
        let supervisor = Arc::new(Poller::new("toolcrib-supervisor", stand_alone));
        let (room, enforced) = (LogRoom::new(logs), OnceLock::new());
        let keepers = Keepers::new(launcher);
        Arc::new(Shells { keepers, room, poller, supervisor, landlock, enforced })
    }

    /// The commands of one session.
    pub fn session(self: &Arc<Shells>, max: usize) -> Jobs {
        let (space, tmp, by_number) = (Mutex::default(), Mutex::default(), Mutex::default());
        Jobs { shells: self.clone(), max, space, tmp, started: AtomicU64::new(0), by_number }
    }

    /// What this system lets us enforce: found by trying, the first time that somebody asks.
    pub fn enforced(self: &Arc<Shells>) -> &Enforced {
        let probe =
            || sandbox_probe::highest(&self.session(sandbox_probe::COMMANDS), self.landlock);
        self.enforced.get_or_init(probe)
    }
}

/// The commands of one session. When it ends, so does everything that they started.
#[derive(Debug)]
pub struct Jobs {
    shells: Arc<Shells>,
    max: usize,
    /// The namespaces that its commands share, once there was one in a sandbox.
    space: Mutex<Option<Arc<Space>>>,
    /// The directory that its commands find as `/tmp`, once somebody asked.
    tmp: Mutex<Option<SessionTmp>>,
    /// How many were started; no number is given twice.
    started: AtomicU64,
    /// In the order in which they were made.
    by_number: Mutex<BTreeMap<u64, Arc<Job>>>,
}

impl Jobs {
    /// Starts a command, with nothing to confine it. It runs when this answers, or has ended already.
    pub fn start(&self, command: &Command) -> Result<Arc<Job>, JobError> {
        self.begin(command, None)
    }

    /// Starts a command in a sandbox, at the level that this system can enforce. The guard decides about
    /// each change that it makes.
    pub fn start_within(
        &self,
        sandbox: &Sandbox,
        command: &Command,
        guard: Arc<dyn Guard>,
    ) -> Result<Arc<Job>, JobError> {
        self.start_at(self.shells.enforced().level, sandbox, command, guard)
    }

    /// Starts a command in a sandbox at a level, or not at all.
    pub(crate) fn start_at(
        &self,
        level: Level,
        sandbox: &Sandbox,
        command: &Command,
        guard: Arc<dyn Guard>,
    ) -> Result<Arc<Job>, JobError> {
        if level == Level::Nothing {
            return Err(JobError::NotConfinable);
        }
        let (sandbox, landlock) = (sandbox.clone(), self.shells.landlock);
        let confinement = Confinement { sandbox, level, landlock };
        self.begin(command, Some((&confinement, guard)))
    }

    fn begin(
        &self,
        command: &Command,
        within: Option<(&Confinement, Arc<dyn Guard>)>,
    ) -> Result<Arc<Job>, JobError> {
        self.make_room()?;
        let failed = |error: io::Error| JobError::not_launched(&error);
        let space = match &within {
            Some((confinement, _)) if confinement.level == Level::Namespaces => Some(self.space()?),
            _ => None,
        };
        let confined = within.as_ref().map(|(confinement, _)| (*confinement, space.as_deref()));
        let launched = self.shells.keepers.launch(command, confined).map_err(failed)?;
        let control = launched.control.try_clone().map_err(failed)?;
        let errors = command.separate_streams.then(|| Log::new(self.shells.room.clone()));
        let logs = (Log::new(self.shells.room.clone()), errors);
        let (script, directory) = (command.script.clone(), command.directory.clone());
        let keeper = (launched.keeper, launched.control);
        let over = self.shells.keepers.over();
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let ids = JobIds { session: format!("{ID_PREFIX}{number}"), keeper: launched.id };
        let job = Job::new(ids, script, directory, keeper, logs, over);
        let job = Arc::new(job);
        let supervision = within.map(|(confinement, guard)| Supervision {
            confinement: confinement.clone(),
            guard,
            poller: self.shells.supervisor.clone(),
        });
        let watched = {
            let outputs = (launched.output, launched.errors);
            self.shells.poller.watch(&job, outputs, control, supervision)
        };
        watched.map_err(failed)?;
        let begun = job.wait(PATIENCE, |now| now.status != Status::Pending);
        if let Some(broken) = begun.broken {
            return Err(broken);
        }
        if begun.status == Status::Pending {
            job.end(Ending::Immediate, Status::Killed);
            return Err(JobError::KeeperSilent);
        }
        self.lock().insert(number, job.clone());
        Ok(job)
    }

    /// A directory of this session that goes with it, for [`Sandbox::tmp`]; made in `parent` the first time.
    pub fn tmp(&self, parent: &Path) -> Result<PathBuf, JobError> {
        let mut tmp = self.tmp.lock().unwrap_or_else(PoisonError::into_inner);
        if tmp.is_none() {
            let made = SessionTmp::make(parent);
            *tmp = Some(made.map_err(|error| JobError::NotPrepared {
                step: "make a directory for the session in".to_owned(),
                what: parent.display().to_string(),
                errno: error.raw_os_error().unwrap_or(0),
            })?);
        }
        Ok(tmp.as_ref().map_or_else(PathBuf::new, |tmp| tmp.path().to_owned()))
    }

    /// The same directory, if it was made.
    pub fn made_tmp(&self) -> Option<PathBuf> {
        let tmp = self.tmp.lock().unwrap_or_else(PoisonError::into_inner);
        tmp.as_ref().map(|tmp| tmp.path().to_owned())
    }

    /// The namespaces of this session; made for the first command that needs them.
    fn space(&self) -> Result<Arc<Space>, JobError> {
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*space {
            return Ok(made.clone());
        }
        let made = Arc::new(self.shells.keepers.make_space()?);
        Ok(space.insert(made).clone())
    }

    /// The job of this session that has this id.
    pub fn get(&self, id: &str) -> Option<Arc<Job>> {
        let number = id.strip_prefix(ID_PREFIX)?.parse().ok()?;
        self.lock().get(&number).filter(|job| job.id() == id).cloned()
    }

    /// All that are remembered, the oldest first.
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.lock().values().cloned().collect()
    }

    /// Those of which something runs.
    pub fn list_running(&self) -> Vec<Arc<Job>> {
        self.list().into_iter().filter(|job| !job.snapshot().over).collect()
    }

    /// Forgets a job of which nothing runs.
    pub fn forget(&self, id: &str) {
        self.lock().retain(|_, job| job.id() != id || !job.snapshot().over);
    }

    /// Forgets those of which nothing runs and that ended so long ago; answers how many.
    pub fn clean_up(&self, age: Duration) -> usize {
        let old = SystemTime::now().checked_sub(age);
        let mut jobs = self.lock();
        let before = jobs.len();
        jobs.retain(|_, job| {
            let now = job.snapshot();
            !now.over || now.finished.zip(old).is_none_or(|(finished, old)| finished > old)
        });
        before - jobs.len()
    }

    /// Has everything ended that runs; answers how many jobs that were.
    pub fn kill_all(&self, how: Ending) -> usize {
        let running = self.list_running();
        for job in &running {
            job.end(how, Status::Killed);
        }
        running.len()
    }

    /// Ends everything, and forgets it.
    pub fn reset(&self) {
        self.kill_all(Ending::Prompt);
        self.lock().clear();
    }

    /// Forgets the oldest that is over, if there are too many.
    fn make_room(&self) -> Result<(), JobError> {
        let mut jobs = self.lock();
        if jobs.len() < self.max {
            return Ok(());
        }
        let oldest = jobs.iter().find(|(_, job)| job.snapshot().over).map(|(number, _)| *number);
        match oldest {
            Some(number) => {
                jobs.remove(&number);
                Ok(())
            }
            None => Err(JobError::TooMany(jobs.len())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Job>>> {
        self.by_number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.kill_all(Ending::Prompt);
    }
}
