//! Commands: what a runtime starts them with, and what a session carries from one to the next.

mod login;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use toolcrib_exec::{
    AllowAll, Enforced, Environment, Jobs, Launcher, LogLimits, Network, Refusal, Sandbox, Shells,
    find_bash, is_secret,
};
use toolcrib_text::Secrets;

use self::login::{login_command, merged, read_login};
use crate::helper::KEEP;
use crate::sandbox::{SandboxSettings, is_enough};
use crate::trail::Trail;

/// Commands of one session at a time, those that have ended and are still remembered among them.
const MAX_JOBS: usize = 1_000;

/// How long a command that has ended is remembered.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// What is kept of one output, and of all.
const LOG_BYTES: u64 = 64 << 20;
const ALL_LOG_BYTES: u64 = 1 << 30;

/// More than a system hands to a program: what a session carries is bounded by it.
const MAX_CARRIED_BYTES: usize = 1 << 20;

/// So many refusals are remembered as told.
const MAX_REFUSALS: usize = 1_000;

type Variables = Vec<(OsString, OsString)>;

/// Where the user's environment comes from; asked at the first command.
pub(crate) type EnvironmentSource = Box<dyn Fn() -> Variables + Send + Sync>;

/// Where the directories of sessions are made if the host keeps nothing: the usual place.
const TMP: &str = "/tmp";

/// What a host says about commands.
pub(crate) struct ShellSettings {
    /// Where long outputs go, and the directories of sessions.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: Option<EnvironmentSource>,
    pub(crate) login_shell: Option<PathBuf>,
    /// What commands are held to; nothing, where they are to run without.
    pub(crate) sandbox: Option<SandboxSettings>,
}

/// What all commands of a runtime have in common.
pub(crate) struct ShellHost {
    shells: Arc<Shells>,
    source: Option<EnvironmentSource>,
    login_shell: Option<PathBuf>,
    sandbox: Option<SandboxSettings>,
    tmp: PathBuf,
    environment: OnceLock<Environment>,
    own_secrets: OnceLock<Variables>,
    bash: OnceLock<Option<PathBuf>>,
}

impl ShellHost {
    /// Commands kept by `program`.
    pub(crate) fn new(program: &Path, settings: ShellSettings) -> ShellHost {
        let ShellSettings { directory, environment, login_shell, sandbox } = settings;
        let tmp = directory.clone().unwrap_or_else(|| PathBuf::from(TMP));
        let launcher = Launcher {
            program: program.to_owned(),
            arguments: KEEP.iter().map(OsString::from).collect(),
        };
        let limits = LogLimits { bytes: LOG_BYTES, all_bytes: ALL_LOG_BYTES, directory };
        ShellHost {
            shells: Shells::new(launcher, limits),
            source: environment,
            login_shell,
            sandbox,
            tmp,
            environment: OnceLock::new(),
            own_secrets: OnceLock::new(),
            bash: OnceLock::new(),
        }
    }

    /// What commands are held to; nothing, where they run without.
    pub(crate) fn sandbox(&self) -> Option<&SandboxSettings> {
        self.sandbox.as_ref()
    }

    /// What this system lets us enforce.
    pub(crate) fn enforced(&self) -> &Enforced {
        self.shells.enforced()
    }

    /// Whether commands are held to something, and well enough.
    pub(crate) fn confines(&self) -> bool {
        self.sandbox.is_some() && is_enough(self.enforced())
    }

    /// Where the directories of sessions are made.
    pub(crate) fn tmp(&self) -> &Path {
        &self.tmp
    }

    pub(crate) fn session(&self) -> SessionShell {
        SessionShell {
            jobs: self.shells.session(MAX_JOBS),
            carried: Mutex::default(),
            cursors: Mutex::default(),
            trails: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// What a command gets that nothing was carried to.
    pub(crate) fn environment(&self) -> &Environment {
        self.environment.get_or_init(|| {
            let own = self.source.as_ref().map(|source| source()).unwrap_or_default();
            let login = self.login_shell.as_deref().zip(self.bash());
            let login = login.and_then(|(shell, bash)| self.login_environment(bash, shell, &own));
            let users = match login {
                Some(login) => merged(own, login),
                None => own,
            };
            Environment::of(users, |value| Secrets::default().are_in(value))
        })
    }

    /// Asks the user's shell for the environment that it makes at a login. Where commands are confined, it is
    /// too: a command may have written the files that it runs, and they cannot change anything then.
    fn login_environment(&self, bash: &Path, shell: &Path, own: &Variables) -> Option<Variables> {
        let command = login_command(bash, shell, own);
        let jobs = self.shells.session(1);
        let job = match &self.sandbox {
            None => jobs.start(&command),
            Some(settings) => {
                let sandbox = Sandbox {
                    writable: Vec::new(),
                    read_only: Vec::new(),
                    hidden: settings.hidden.clone(),
                    tmp: jobs.tmp(&self.tmp).ok()?,
                    supervise_reads: false,
                    network: Network::None,
                    limits: toolcrib_exec::Limits::DEFAULT,
                };
                jobs.start_within(&sandbox, &command, Arc::new(AllowAll))
            }
        };
        read_login(&*job.ok()?)
    }

    /// What of the user's environment, and of what a session exports, is secret. What a login adds to that is
    /// known from the first command on.
    pub(crate) fn secrets(&self, session: Option<&SessionShell>) -> Secrets {
        let is_secret = |(name, _): &&(OsString, OsString)| is_secret(&name.to_string_lossy());
        let own = self.own_secrets.get_or_init(|| {
            let own = self.source.as_ref().map(|source| source()).unwrap_or_default();
            own.iter().filter(is_secret).cloned().collect()
        });
        let login = self.environment.get().into_iter().flat_map(|environment| &environment.secrets);
        let carried = session.and_then(|session| session.carried().environment).unwrap_or_default();
        let all = own.iter().chain(login).chain(carried.iter().filter(is_secret));
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        Secrets::known(all.filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    pub(crate) fn bash(&self) -> Option<&Path> {
        self.bash.get_or_init(find_bash).as_deref()
    }
}

/// The commands of a session, and what one leaves to the next.
#[derive(Debug)]
pub(crate) struct SessionShell {
    jobs: Jobs,
    carried: Mutex<Carried>,
    cursors: Mutex<HashMap<String, u64>>,
    trails: Mutex<HashMap<String, Arc<Trail>>>,
    /// What was refused to its commands, and told.
    refused: Mutex<HashSet<Refusal>>,
}

/// What a command left to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Carried {
    /// Where it was, inside a root.
    pub(crate) directory: Option<PathBuf>,
    /// What it exported.
    pub(crate) environment: Option<Variables>,
}

impl SessionShell {
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    pub(crate) fn carried(&self) -> Carried {
        lock(&self.carried).clone()
    }

    pub(crate) fn carry_directory(&self, directory: PathBuf) {
        lock(&self.carried).directory = Some(directory);
    }

    /// Answers whether it was taken: more than a system hands to a program is not.
    pub(crate) fn carry_environment(&self, environment: Variables) -> bool {
        let bytes: usize =
            environment.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        let taken = bytes <= MAX_CARRIED_BYTES;
        if taken {
            lock(&self.carried).environment = Some(environment);
        }
        taken
    }

    /// What a job changes, if somebody looks.
    pub(crate) fn trail(&self, id: &str) -> Option<Arc<Trail>> {
        lock(&self.trails).get(id).cloned()
    }

    pub(crate) fn keep_trail(&self, id: &str, trail: Arc<Trail>) {
        let mut trails = lock(&self.trails);
        // Those of jobs that are forgotten have said what they had to say.
        trails.retain(|id, _| self.jobs.get(id).is_some());
        trails.insert(id.to_owned(), trail);
    }

    /// Those of some refusals that no command of this session has met before.
    pub(crate) fn first_refusals(&self, refusals: Vec<Refusal>) -> Vec<Refusal> {
        let mut known = lock(&self.refused);
        // A session that meets thousands is told some of them again.
        if known.len() > MAX_REFUSALS {
            known.clear();
        }
        refusals.into_iter().filter(|refusal| known.insert(refusal.clone())).collect()
    }

    /// Up to where the output of a job was read.
    pub(crate) fn cursor(&self, id: &str) -> u64 {
        lock(&self.cursors).get(id).copied().unwrap_or(0)
    }

    pub(crate) fn read_to(&self, id: &str, cursor: u64) {
        let mut cursors = lock(&self.cursors);
        // Those of jobs that are forgotten are of no use.
        if cursors.len() > 2 * MAX_JOBS {
            cursors.retain(|id, _| self.jobs.get(id).is_some());
        }
        cursors.insert(id.to_owned(), cursor);
    }
}

/// What these locks guard is whole between any two statements, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
