//! Loading the environment of a login in the background.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_exec::{AllowAll, Ending, Job, JobRunner, Status};

use super::{Variables, cache, environment_at_login, files::fingerprint, login_command, parse};
use crate::sandbox::is_enough;
use crate::shell::read_only_sandbox;

/// A command waits no longer than this after we were started.
const PATIENCE: Duration = Duration::from_secs(1);

/// A shell that nothing can be written by may be ended at any time, and is after so long.
const MOST: Duration = Duration::from_secs(60);

/// How long the shell may take for the rest once the environment was printed.
const REST: Duration = Duration::from_secs(2);

/// How often the output is looked at, and the wish to stop.
const GLANCE: Duration = Duration::from_millis(10);

/// What an environment has at most.
const MAX_BYTES: usize = 4 << 20;

/// What is needed to run the user's shell.
pub(in crate::shell) struct LoginProbe {
    pub(in crate::shell) shells: Arc<JobRunner>,
    pub(in crate::shell) bash: PathBuf,
    pub(in crate::shell) shell: PathBuf,
    /// The environment of this process.
    pub(in crate::shell) own: Variables,
    /// Places that the shell does not see.
    pub(in crate::shell) hidden: Vec<PathBuf>,
    /// Where the directory for its `/tmp` is made.
    pub(in crate::shell) tmp: PathBuf,
    /// Where the result is kept.
    pub(in crate::shell) state: Option<PathBuf>,
}

/// The environment of a login, once it is there.
pub(in crate::shell) struct Login {
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
pub(in crate::shell) enum Loaded {
    #[default]
    NotYet,
    /// The shell printed no environment.
    Nothing,
    Variables(Arc<Variables>),
}

impl Login {
    /// Begins to load it.
    pub(in crate::shell) fn load(probe: LoginProbe) -> Login {
        let shared = Arc::new(Shared::default());
        let to_tell = shared.clone();
        let thread = std::thread::Builder::new().name("toolcrib-login".to_owned());
        if thread.spawn(move || probe.run(&to_tell)).is_err() {
            shared.tell(Loaded::Nothing);
        }
        Login { shared, began: Instant::now() }
    }

    /// What there is, after a short wait if we have just been started.
    pub(in crate::shell) fn wait(&self) -> Loaded {
        let mut state = self.shared.lock();
        while matches!(state.loaded, Loaded::NotYet) {
            let left = PATIENCE.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.loaded.clone()
    }

    /// What there is now.
    pub(in crate::shell) fn now(&self) -> Loaded {
        self.shared.lock().loaded.clone()
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
    }
}

impl Shared {
    fn tell(&self, loaded: Loaded) {
        self.lock().loaded = loaded;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            shared.tell(Loaded::Variables(Arc::new(kept.variables)));
        }
        // Found by trying, which the first command would have to wait for.
        self.shells.sandbox_support();
        if !run {
            return;
        }
        let variables = self.ask_the_shell(environment, shared);
        if let (Some(state), Some(variables)) = (&self.state, &variables) {
            cache::write(state, &fingerprint, variables);
        }
        match variables {
            Some(variables) => shared.tell(Loaded::Variables(Arc::new(variables))),
            None if had_one => {}
            None => shared.tell(Loaded::Nothing),
        }
    }

    /// Runs the shell where nothing can be written, if the system allows that: a command may have written the
    /// files that it runs, and a profile that is ended while it holds a lock would leave it behind.
    fn ask_the_shell(&self, environment: Variables, shared: &Shared) -> Option<Variables> {
        let command = login_command(&self.bash, &self.shell, environment);
        let jobs = self.shells.session(1);
        let confined = is_enough(self.shells.sandbox_support());
        let job = match confined {
            true => {
                let sandbox = read_only_sandbox(&jobs, &self.hidden, &self.tmp)?;
                jobs.start_sandboxed(&sandbox, &command, Arc::new(AllowAll))
            }
            false => jobs.start(&command),
        };
        let job = job.ok()?;
        let variables = read(&job, confined.then_some(MOST), shared);
        if variables.is_some() {
            job.wait(REST, |now| !now.status.is_running());
        }
        job.end(Ending::Prompt, Status::Killed);
        variables
    }
}

/// What the shell prints, as soon as it has; nothing, if it ends before, takes too long, or nobody wants it
/// any more.
fn read(job: &Job, most: Option<Duration>, shared: &Shared) -> Option<Variables> {
    let began = Instant::now();
    loop {
        let now = job.wait(GLANCE, |now| now.closed);
        let bytes = usize::try_from(now.written).unwrap_or(MAX_BYTES).min(MAX_BYTES);
        if let Some(variables) = parse(&job.read(0, bytes).1) {
            return Some(variables);
        }
        let is_late = most.is_some_and(|most| began.elapsed() >= most);
        if now.closed || is_late || shared.lock().stop {
            return None;
        }
    }
}
