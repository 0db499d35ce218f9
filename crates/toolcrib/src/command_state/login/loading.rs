//! Loads the login environment in the background.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib_exec::{AllowAll, Ending, Job, JobRunner, PathSet, StartOptions, Status};

use super::{Variables, cache, environment_at_login, files::fingerprint, login_command, parse};
use crate::command_state::read_only_sandbox;
use crate::sandbox_settings::is_sufficient;

/// A command waits at most this long after the start of the runtime.
const COMMAND_WAIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit of the shell in a sandbox. It can write nothing, so it may be ended at any time.
const SHELL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for the shell to exit after it has printed the environment.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of checks for output and for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Limit of the output.
const MAX_BYTES: usize = 4 << 20;

/// Parameters of the login shell.
pub(in crate::command_state) struct LoginProbe {
    pub(in crate::command_state) shells: Arc<JobRunner>,
    pub(in crate::command_state) bash: PathBuf,
    pub(in crate::command_state) shell: PathBuf,
    /// The environment that the host passed in.
    pub(in crate::command_state) own: Variables,
    /// Paths that the shell does not see.
    pub(in crate::command_state) hidden: PathSet,
    /// Parent of the directory for its `/tmp`.
    pub(in crate::command_state) tmp: PathBuf,
    /// State directory for the cache.
    pub(in crate::command_state) state: Option<PathBuf>,
}

/// The login environment, loaded in the background.
pub(in crate::command_state) struct Login {
    shared: Arc<Shared>,
    began: Instant,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    loaded: Loaded,
    stop: bool,
}

#[derive(Clone, Default)]
pub(in crate::command_state) enum Loaded {
    #[default]
    NotYet,
    /// The shell printed no environment.
    Failed,
    Variables(Arc<Variables>),
}

impl Login {
    /// Starts loading.
    pub(in crate::command_state) fn load(probe: LoginProbe) -> Login {
        let shared = Arc::new(Shared::default());
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("toolcrib-login".to_owned());
        if thread.spawn(move || probe.run(&for_thread)).is_err() {
            shared.set(Loaded::Failed);
        }
        Login { shared, began: Instant::now() }
    }

    /// The state, after a short wait if the runtime has just started.
    pub(in crate::command_state) fn wait(&self) -> Loaded {
        let mut state = self.shared.state.lock();
        while matches!(state.loaded, Loaded::NotYet) {
            let left = COMMAND_WAIT_TIMEOUT.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                break;
            }
            self.shared.changed.wait_for(&mut state, left);
        }
        state.loaded.clone()
    }

    pub(in crate::command_state) fn now(&self) -> Loaded {
        self.shared.state.lock().loaded.clone()
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
    }
}

impl Shared {
    fn set(&self, loaded: Loaded) {
        self.state.lock().loaded = loaded;
        self.changed.notify_all();
    }
}

impl LoginProbe {
    fn run(self, shared: &Shared) {
        let environment = environment_at_login(&self.own);
        let fingerprint = fingerprint(&self.shell, &environment);
        let kept = self.state.as_deref().and_then(|state| cache::read(state, &fingerprint));
        let run = kept.as_ref().is_none_or(|kept| kept.run_again);
        let had_one = kept.is_some();
        if let Some(kept) = kept {
            shared.set(Loaded::Variables(Arc::new(kept.variables)));
        }
        // Determined by a test, which the first command would otherwise wait for.
        self.shells.sandbox_support();
        if !run {
            return;
        }
        let variables = self.run_login_shell(environment, shared);
        if let (Some(state), Some(variables)) = (&self.state, &variables) {
            cache::write(state, &fingerprint, variables);
        }
        match variables {
            Some(variables) => shared.set(Loaded::Variables(Arc::new(variables))),
            None if had_one => {}
            None => shared.set(Loaded::Failed),
        }
    }

    /// Runs the shell without write access if the system supports it: a command may have written the files that
    /// it executes, and a profile that is killed while it holds a lock would leave the lock behind.
    fn run_login_shell(&self, environment: Variables, shared: &Shared) -> Option<Variables> {
        let command = login_command(&self.bash, &self.shell, environment);
        let jobs = self.shells.session(1);
        let confined = is_sufficient(self.shells.sandbox_support());
        let job = if confined {
            let sandbox = read_only_sandbox(&jobs, &self.hidden, &self.tmp)?;
            jobs.start(&command, StartOptions::sandboxed(&sandbox, Arc::new(AllowAll)))
        } else {
            jobs.start(&command, StartOptions::unconfined())
        };
        let job = job.ok()?;
        let variables = read(&job, confined.then_some(SHELL_TIMEOUT), shared);
        if variables.is_some() {
            job.wait(EXIT_TIMEOUT, |now| !now.status.is_running());
        }
        job.end(Ending::Prompt, Status::Killed);
        variables
    }
}

/// Reads the variables as soon as they are printed. `None` if the shell exits first, takes too long, or is no
/// longer needed.
fn read(job: &Job, timeout: Option<Duration>, shared: &Shared) -> Option<Variables> {
    let began = Instant::now();
    loop {
        let now = job.wait(POLL_INTERVAL, |now| now.closed);
        let bytes = usize::try_from(now.written).unwrap_or(MAX_BYTES).min(MAX_BYTES);
        if let Some(variables) = parse(&job.read(0, bytes).1) {
            return Some(variables);
        }
        let is_late = timeout.is_some_and(|most| began.elapsed() >= most);
        if now.closed || is_late || shared.state.lock().stop {
            return None;
        }
    }
}
