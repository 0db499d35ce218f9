//! The commands of one session: the running ones and the ended ones that are still remembered.

mod sandbox_probe;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::command::{Command, Stream};
use crate::error::JobError;
use crate::gateway::{Gateway, NetworkExit, NetworkSockets, ProxyExit};
use crate::job::{Job, JobIds, Status};
use crate::launch::Launcher;
use crate::limit_watch::LimitWatch;
use crate::output_buffer::{OutputBuffer, OutputLimits, OutputSpace};
use crate::poller::{Poller, Supervision};
use crate::running_limit::RunningLimit;
use crate::sandbox::level::{Level, SandboxSupport};
use crate::sandbox::namespaces::SessionNamespaces;
use crate::sandbox::network_namespace::configure;
use crate::sandbox::{Confinement, Network, Sandbox};
use crate::session_tmp::{SessionTmp, free_bytes};
use crate::setup_error::path_context;
use crate::shim_messages::Ending;
use crate::shims::Shims;
use crate::start_options::{ReservedId, StartOptions};
use crate::streams::Streams;
use crate::supervise::caller::unshare_fs;

/// The prefix of a job id. The number of the job in its session follows.
const ID_PREFIX: &str = "sh_";

/// How long a shim may take to report that the shell runs. It takes a millisecond, but longer on a machine
/// that swaps.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs commands for any number of sessions, with one thread for all of them.
#[derive(Debug)]
pub struct JobRunner {
    shims: Shims,
    output_space: Arc<OutputSpace>,
    poller: Poller,
    supervisor: Arc<Poller>,
    limit_watch: Arc<LimitWatch>,
    /// The newest Landlock version to use.
    max_landlock: i64,
    sandbox_support: OnceLock<SandboxSupport>,
}

impl JobRunner {
    /// Creates a runner. No process or thread is started before the first command.
    pub fn new(launcher: Launcher, output_limits: OutputLimits) -> Arc<JobRunner> {
        JobRunner::with_max_landlock(i64::MAX, launcher, output_limits)
    }

    /// Creates a runner that uses no newer Landlock version than this, as on an older system.
    pub fn with_max_landlock(
        max_landlock: i64,
        launcher: Launcher,
        output_limits: OutputLimits,
    ) -> Arc<JobRunner> {
        let poller = Poller::new("toolcrib-jobs", || Ok(()));
        let supervisor = Arc::new(Poller::new("toolcrib-supervisor", unshare_fs));
        let (output_space, sandbox_support) = (OutputSpace::new(output_limits), OnceLock::new());
        let shims = Shims::new(launcher);
        Arc::new(JobRunner {
            shims,
            output_space,
            poller,
            supervisor,
            limit_watch: Arc::default(),
            max_landlock,
            sandbox_support,
        })
    }

    /// Creates a session that remembers at most `max` jobs.
    pub fn session(self: &Arc<JobRunner>, max: usize) -> Jobs {
        self.session_with_gateway(max, None)
    }

    /// Creates a session whose commands with [`crate::Network::List`] use a gateway.
    pub fn session_with_gateway(
        self: &Arc<JobRunner>,
        max: usize,
        gateway: Option<Arc<dyn Gateway>>,
    ) -> Jobs {
        let (namespaces, tmp, by_number) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (runner, started, proxy) = (self.clone(), AtomicU64::new(0), Mutex::default());
        let limit = None;
        Jobs { runner, max, limit, gateway, namespaces, proxy, tmp, started, by_number }
    }

    /// The level of confinement that this system supports. The first call finds out by running commands.
    pub fn sandbox_support(self: &Arc<JobRunner>) -> &SandboxSupport {
        let probe = || {
            sandbox_probe::probe_support(
                &self.session(sandbox_probe::MAX_COMMANDS),
                self.max_landlock,
            )
        };
        self.sandbox_support.get_or_init(probe)
    }
}

/// The commands of one session. Dropping it ends all their processes.
#[derive(Debug)]
pub struct Jobs {
    runner: Arc<JobRunner>,
    max: usize,
    /// The limit of running jobs that it shares with other sessions.
    limit: Option<Arc<RunningLimit>>,
    /// The way of its commands to other machines.
    gateway: Option<Arc<dyn Gateway>>,
    /// The namespaces that its sandboxed commands share. Made for the first of them.
    namespaces: Mutex<Option<SharedNamespaces>>,
    /// The proxy of its commands without namespaces. Made for the first of them.
    proxy: Mutex<Option<ProxyExit>>,
    /// The directory that its commands see as `/tmp`. Made on the first call of [`Jobs::tmp`].
    tmp: Mutex<Option<SessionTmp>>,
    /// The last number of a job. No number is used twice.
    started: AtomicU64,
    /// The jobs by their number, so in the order of their start.
    by_number: Mutex<BTreeMap<u64, Arc<Job>>>,
}

/// The namespaces of a session, and the way out of its network namespace.
#[derive(Debug, Clone)]
struct SharedNamespaces {
    namespaces: Arc<SessionNamespaces>,
    exit: Option<Arc<dyn NetworkExit>>,
}

impl Jobs {
    /// Counts its running jobs towards a limit that other sessions share.
    pub fn limited_by(mut self, limit: Arc<RunningLimit>) -> Jobs {
        self.limit = Some(limit);
        self
    }

    /// The id of a job, before it is started. No other job gets it, even if this one cannot be started.
    pub fn reserve_id(&self) -> ReservedId {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        ReservedId { number, id: format!("{ID_PREFIX}{number}") }
    }

    /// Starts a command whose output the job keeps. When this returns, it runs or has already ended. Fails if the
    /// session has too many running jobs, if the command cannot be started, or if this system cannot confine it as
    /// wanted.
    pub fn start(
        &self,
        command: &Command,
        options: StartOptions<'_>,
    ) -> Result<Arc<Job>, JobError> {
        Ok(self.launch(command, options, |streams| (Some(streams), None))?.0)
    }

    /// Starts a command like [`Jobs::start`], and gives its streams to the caller. The job has no output.
    pub fn spawn(
        &self,
        command: &Command,
        options: StartOptions<'_>,
    ) -> Result<(Arc<Job>, Streams), JobError> {
        let (job, streams) = self.launch(command, options, |streams| (None, Some(streams)))?;
        Ok((job, streams.ok_or(JobError::ShimUnresponsive)?))
    }

    /// Starts a command. `divide` returns the streams whose output the job keeps, and those for the caller.
    fn launch(
        &self,
        command: &Command,
        options: StartOptions<'_>,
        divide: impl FnOnce(Streams) -> (Option<Streams>, Option<Streams>),
    ) -> Result<(Arc<Job>, Option<Streams>), JobError> {
        let StartOptions { id, sandbox, level, limits_of } = options;
        let ReservedId { number, id } = id.unwrap_or_else(|| self.reserve_id());
        let within = match sandbox {
            None => None,
            Some((sandbox, guard)) => Some((self.confinement(sandbox, level)?, guard)),
        };
        self.evict_oldest_finished()?;
        let place = self.limit.as_ref().map(RunningLimit::reserve).transpose()?;
        let failed = |error: io::Error| JobError::not_launched(&error);
        let namespaces = match &within {
            Some((confinement, _)) if confinement.level == Level::Namespaces => {
                Some(self.namespaces()?)
            }
            _ => None,
        };
        let confined = within.as_ref().map(|(confinement, _)| {
            (confinement, namespaces.as_ref().map(|shared| &*shared.namespaces))
        });
        let limits = limits_of.map(|sandbox| sandbox.limits);
        let (launched, streams) = self.runner.shims.launch(command, confined, limits)?;
        let (kept, given) = divide(streams);
        let control = launched.control.try_clone().map_err(failed)?;
        let buffer = || OutputBuffer::new(self.runner.output_space.clone());
        let keeps_errors = kept.as_ref().is_some_and(|kept| kept.stderr.is_some());
        let buffers = (buffer(), keeps_errors.then(buffer));
        let (script, directory) = (command.script.clone(), command.directory.clone());
        let shim = (launched.shim, launched.control);
        let ids = JobIds { session: id, global: launched.id };
        let job = Job::new(ids, script, directory, shim, buffers);
        let job = Arc::new(job);
        if let Some(place) = place {
            place.give_to(&job);
        }
        let confined = within.as_ref().map(|(confinement, _)| &confinement.sandbox);
        if let Some(sandbox) = confined.or(limits_of) {
            self.watch_limits(&job, sandbox);
        }
        let supervision = within.map(|(confinement, guard)| {
            let proxy = self.proxy.lock().as_ref().map(|proxy| proxy.exit.clone());
            let proxy = proxy.filter(|_| confinement.proxy_port.is_some());
            Supervision {
                confinement,
                guard,
                poller: self.runner.supervisor.clone(),
                gateway: self.gateway.clone(),
                exit: namespaces.and_then(|shared| shared.exit).or(proxy),
            }
        });
        if kept.is_none() {
            job.stream_closed(Stream::Output);
        }
        let outputs = kept.map_or_else(Vec::new, |kept| {
            let errors = kept.stderr.map(|errors| (errors, Stream::Errors));
            [(kept.stdout, Stream::Output)].into_iter().chain(errors).collect()
        });
        let watched = self.runner.poller.watch_job(&job, outputs, control, supervision);
        watched.map_err(failed)?;
        let started_job = job.wait(START_TIMEOUT, |now| now.status != Status::Pending);
        if let Some(error) = started_job.error {
            return Err(error);
        }
        if started_job.status == Status::Pending {
            job.end(Ending::Immediate, Status::Killed);
            return Err(JobError::ShimUnresponsive);
        }
        self.by_number.lock().insert(number, job.clone());
        Ok((job, given))
    }

    /// Kills the job when it exceeds a limit that the kernel does not enforce.
    fn watch_limits(&self, job: &Arc<Job>, sandbox: &Sandbox) {
        let session_tmp = self.tmp.lock();
        let made = session_tmp.as_ref().filter(|made| made.path() == sandbox.tmp);
        let free = made.map_or_else(|| free_bytes(&sandbox.tmp), SessionTmp::free_at_start);
        self.runner.limit_watch.watch(job, &sandbox.limits, (sandbox.tmp.clone(), free));
    }

    /// The sandbox at a level, or at the highest one that this system supports.
    fn confinement(
        &self,
        sandbox: &Sandbox,
        level: Option<Level>,
    ) -> Result<Confinement, JobError> {
        let level = level.unwrap_or_else(|| self.runner.sandbox_support().level);
        let has_no_exit = sandbox.network == Network::List && self.gateway.is_none();
        if level == Level::Nothing || has_no_exit {
            return Err(JobError::NotConfinable);
        }
        let needs_proxy = sandbox.network == Network::List && !level.has_namespaces();
        let proxy_port = if needs_proxy { Some(self.proxy_port()?) } else { None };
        let (sandbox, max_landlock) = (sandbox.clone(), self.runner.max_landlock);
        Ok(Confinement { sandbox, level, max_landlock, proxy_port })
    }

    /// The port of the proxy at 127.0.0.1 through which commands without namespaces reach hosts. The first call
    /// starts it. Fails if this system cannot restrict commands to it.
    pub fn proxy_port(&self) -> Result<u16, JobError> {
        let gateway = self.gateway.as_ref().ok_or(JobError::NotConfinable)?;
        if !self.runner.sandbox_support().can_restrict_tcp {
            return Err(JobError::NotConfinable);
        }
        let mut proxy = self.proxy.lock();
        if let Some(opened) = &*proxy {
            return Ok(opened.port);
        }
        let opened = gateway.open_proxy().map_err(|error| JobError::not_launched(&error))?;
        Ok(proxy.insert(opened).port)
    }

    /// The temporary directory of this session, for [`Sandbox::tmp`]. The first call creates it in `parent`.
    /// It is removed with the session.
    pub fn tmp(&self, parent: &Path) -> Result<PathBuf, JobError> {
        let mut tmp = self.tmp.lock();
        if tmp.is_none() {
            let made = SessionTmp::make(parent);
            *tmp = Some(path_context("create a directory for the session in", parent, made)?);
        }
        Ok(tmp.as_ref().map_or_else(PathBuf::new, |tmp| tmp.path().to_owned()))
    }

    /// The temporary directory of this session. `None` if it has not been created.
    pub fn existing_tmp(&self) -> Option<PathBuf> {
        let tmp = self.tmp.lock();
        tmp.as_ref().map(|tmp| tmp.path().to_owned())
    }

    /// The namespaces of this session. The first call makes them.
    fn namespaces(&self) -> Result<SharedNamespaces, JobError> {
        let mut namespaces = self.namespaces.lock();
        if let Some(made) = &*namespaces {
            return Ok(made.clone());
        }
        let (made, sockets) = self.runner.shims.make_namespaces(self.gateway.is_some())?;
        let made = Arc::new(made);
        let sockets = configure(sockets).map_err(|error| JobError::not_launched(&error))?;
        let exit = match (&self.gateway, sockets) {
            (Some(gateway), Some(sockets)) => {
                // The runner owns threads that may be the last to drop this.
                let (runner, inside) = (Arc::downgrade(&self.runner), made.clone());
                let more = move || {
                    let runner = runner.upgrade().ok_or(io::ErrorKind::NotConnected)?;
                    let made = runner.shims.make_sockets(&inside);
                    made.map_err(|error| io::Error::other(error.to_string()))
                };
                let sockets = NetworkSockets { more: Some(Box::new(more)), ..sockets };
                let opened = gateway.open(sockets);
                Some(opened.map_err(|error| JobError::not_launched(&error))?)
            }
            _ => None,
        };
        Ok(namespaces.insert(SharedNamespaces { namespaces: made, exit }).clone())
    }

    /// The job with this id. `None` if this session has none.
    pub fn get(&self, id: &str) -> Option<Arc<Job>> {
        let number = id.strip_prefix(ID_PREFIX)?.parse().ok()?;
        self.by_number.lock().get(&number).filter(|job| job.id() == id).cloned()
    }

    /// All remembered jobs, oldest first.
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.by_number.lock().values().cloned().collect()
    }

    /// The jobs that still have a running process.
    pub fn list_running(&self) -> Vec<Arc<Job>> {
        self.list().into_iter().filter(|job| !job.snapshot().all_exited).collect()
    }

    /// Forgets a job, unless one of its processes still runs.
    pub fn forget(&self, id: &str) {
        self.by_number.lock().retain(|_, job| job.id() != id || !job.snapshot().all_exited);
    }

    /// Forgets jobs that ended at least `age` ago and have no running process. Returns their number.
    pub fn clean_up(&self, age: Duration) -> usize {
        let old = SystemTime::now().checked_sub(age);
        let mut jobs = self.by_number.lock();
        let before = jobs.len();
        jobs.retain(|_, job| {
            let now = job.snapshot();
            !now.all_exited || now.finished.zip(old).is_none_or(|(finished, old)| finished > old)
        });
        before - jobs.len()
    }

    /// Ends all processes of all jobs. Returns the number of jobs that had running processes.
    pub fn kill_all(&self, how: Ending) -> usize {
        let running = self.list_running();
        for job in &running {
            job.end(how, Status::Killed);
        }
        running.len()
    }

    /// Ends and forgets all jobs.
    pub fn reset(&self) {
        self.kill_all(Ending::Prompt);
        self.by_number.lock().clear();
    }

    /// Forgets the oldest job without running processes if the session is full.
    fn evict_oldest_finished(&self) -> Result<(), JobError> {
        let mut jobs = self.by_number.lock();
        if jobs.len() < self.max {
            return Ok(());
        }
        let oldest =
            jobs.iter().find(|(_, job)| job.snapshot().all_exited).map(|(number, _)| *number);
        match oldest {
            Some(number) => {
                jobs.remove(&number);
                Ok(())
            }
            None => Err(JobError::TooMany(jobs.len())),
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.kill_all(Ending::Prompt);
    }
}
