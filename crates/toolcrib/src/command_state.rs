//! State shared by the commands of a runtime.

mod bash_syntax_check;
mod login;
mod offline;
mod proxy_variables;
mod session_caches;
mod session_shell;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use toolcrib_exec::{
    AllowAll, Environment, JobRunner, Jobs, Launcher, Network, OuterWall, OutputLimits, PathSet,
    RunningLimit, Sandbox, SandboxSupport, StartOptions, find_bash, is_secret,
};
use toolcrib_net::Resolver;
use toolcrib_text::Secrets;

use self::bash_syntax_check::{read_syntax_check, syntax_check};
pub use self::login::login_files;
use self::login::{Loaded, Login, LoginProbe, merged};
pub(crate) use self::offline::add_offline_variables;
pub(crate) use self::proxy_variables::set_proxy_variables;
pub(crate) use self::session_caches::add_session_caches;
pub(crate) use self::session_shell::{Carried, ReadPositions, SessionShell};
use crate::command_changes::RunningChanges;
use crate::network::{Inspection, SessionConnections};
use crate::sandbox_settings::{SandboxSettings, is_sufficient};

/// First argument of the host's own program if it is started as a helper process.
pub(crate) const HELPER_ARGUMENT: &str = "toolcrib-helper";

/// Arguments of a helper that runs a command.
pub(crate) const SHIM_ARGUMENTS: [&str; 2] = [HELPER_ARGUMENT, "keep"];

/// Jobs of one session, running and finished.
const MAX_JOBS: usize = 1_000;

/// How long a finished job is kept.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(60 * 60);

/// Limits of stored output: one job, all jobs.
const LOG_BYTES: u64 = 64 << 20;
const ALL_LOG_BYTES: u64 = 1 << 30;

pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Source of the user's environment. Called once.
pub(crate) type EnvironmentSource = Box<dyn Fn() -> Variables + Send + Sync>;

/// Parent of the session directories if the host has no state directory.
const TMP: &str = "/tmp";

/// Settings of commands.
pub(crate) struct ShellSettings {
    /// Directory for long outputs and for the session directories.
    pub(crate) directory: Option<PathBuf>,
    /// First root, for listings of running commands.
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) environment: Option<EnvironmentSource>,
    pub(crate) login_shell: Option<PathBuf>,
    /// `None` runs commands without a sandbox.
    pub(crate) sandbox: Option<SandboxSettings>,
    /// Finds the addresses of hosts that commands connect to.
    pub(crate) resolver: Arc<dyn Resolver>,
    /// Inspected hosts, if there are some.
    pub(crate) inspection: Option<Inspection>,
    /// Running commands of all sessions together.
    pub(crate) max_running: Option<usize>,
}

/// State shared by all commands of a runtime.
pub(crate) struct ShellHost {
    shells: Arc<JobRunner>,
    source: Option<EnvironmentSource>,
    login: Option<Login>,
    sandbox: Option<SandboxSettings>,
    resolver: Arc<dyn Resolver>,
    inspection: Option<Arc<Inspection>>,
    running: Option<Arc<RunningLimit>>,
    running_changes: Arc<RunningChanges>,
    tmp: PathBuf,
    environment: OnceLock<Arc<Environment>>,
    /// The environment that the host passed in.
    own: OnceLock<Variables>,
    bash: OnceLock<Option<PathBuf>>,
}

impl ShellHost {
    /// `program` is the host's program, which runs the shim.
    pub(crate) fn new(program: &Path, settings: ShellSettings) -> ShellHost {
        let ShellSettings {
            directory,
            workspace,
            environment,
            login_shell,
            sandbox,
            resolver,
            inspection,
            max_running,
        } = settings;
        let tmp = directory.clone().unwrap_or_else(|| PathBuf::from(TMP));
        let state = directory.clone();
        let launcher = Launcher {
            program: program.to_owned(),
            arguments: SHIM_ARGUMENTS.iter().map(OsString::from).collect(),
            workspace,
        };
        let limits = OutputLimits { bytes: LOG_BYTES, all_bytes: ALL_LOG_BYTES, directory };
        let mut host = ShellHost {
            shells: JobRunner::new(launcher, limits),
            source: environment,
            login: None,
            sandbox,
            resolver,
            inspection: inspection.map(Arc::new),
            running: max_running.map(RunningLimit::new),
            running_changes: Arc::default(),
            tmp,
            environment: OnceLock::new(),
            own: OnceLock::new(),
            bash: OnceLock::new(),
        };
        host.login = login_shell.and_then(|shell| host.begin_login(shell, state));
        host
    }

    /// Starts loading the environment of the user's login shell.
    fn begin_login(&self, shell: PathBuf, state: Option<PathBuf>) -> Option<Login> {
        let own = self.own.get_or_init(|| own_variables(&self.source)).clone();
        let hidden = self.sandbox.as_ref().map(|settings| settings.hidden.clone());
        Some(Login::load(LoginProbe {
            shells: self.shells.clone(),
            bash: self.bash()?.to_owned(),
            shell,
            own,
            hidden: hidden.unwrap_or_default(),
            tmp: self.tmp.clone(),
            state,
        }))
    }

    /// Settings of the sandbox. `None` if commands run without one.
    pub(crate) fn sandbox(&self) -> Option<&SandboxSettings> {
        self.sandbox.as_ref()
    }

    /// Restrictions that this system can enforce.
    pub(crate) fn enforced(&self) -> &SandboxSupport {
        self.shells.sandbox_support()
    }

    /// Whether commands run in a sandbox of sufficient level.
    pub(crate) fn confines(&self) -> bool {
        self.sandbox.is_some() && is_sufficient(self.enforced())
    }

    /// Whether commands have a network namespace of their own.
    pub(crate) fn has_own_loopback(&self) -> bool {
        let is_private = self.sandbox.as_ref().is_some_and(|one| one.network.is_private());
        is_private && self.confines() && self.enforced().level.has_namespaces()
    }

    /// The sandbox around this system, if commands run in it without one of ours.
    pub(crate) fn outer_wall(&self) -> Option<OuterWall> {
        let wall = self.sandbox.as_ref().and_then(|settings| settings.outer);
        wall.filter(|_| !is_sufficient(self.enforced()))
    }

    /// The changes of the commands that run.
    pub(crate) fn running_changes(&self) -> &Arc<RunningChanges> {
        &self.running_changes
    }

    /// Parent of the session directories.
    pub(crate) fn tmp(&self) -> &Path {
        &self.tmp
    }

    pub(crate) fn session(&self) -> SessionShell {
        let listed = self.sandbox.as_ref().filter(|settings| settings.network == Network::List);
        let (network, gateway) = listed
            .map(|settings| {
                let (resolver, inspection) = (self.resolver.clone(), self.inspection.clone());
                SessionConnections::new(resolver, settings.expose.clone(), inspection)
            })
            .unzip();
        let jobs = self.shells.session_with_gateway(MAX_JOBS, gateway);
        SessionShell::new(self.running.iter().cloned().fold(jobs, Jobs::limited_by), network)
    }

    /// A place for the runtime's own processes. It remembers at most `max`.
    pub(crate) fn own_jobs(&self, max: usize) -> Jobs {
        self.shells.session(max)
    }

    /// Inspected hosts, if there are some.
    pub(crate) fn inspection(&self) -> Option<&Inspection> {
        self.inspection.as_deref()
    }

    /// The user's environment without what commands do not get.
    fn user_environment(&self, variables: Variables) -> Environment {
        let is_withheld = |(name, value): &(OsString, OsString)| {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            self.inspection().is_some_and(|inspection| inspection.withholds(&name, &value))
        };
        let variables = variables.into_iter().filter(|variable| !is_withheld(variable)).collect();
        user_environment(variables)
    }

    /// Environment of a session's first command, and whether it includes the login environment, if one is to be
    /// loaded.
    pub(crate) fn environment(&self) -> (Arc<Environment>, bool) {
        if let Some(known) = self.environment.get() {
            return (known.clone(), true);
        }
        let own = self.own.get_or_init(|| own_variables(&self.source)).clone();
        let users = match self.login.as_ref().map(Login::wait) {
            Some(Loaded::NotYet) => return (Arc::new(self.user_environment(own)), false),
            Some(Loaded::Variables(login)) => merged(own, login.to_vec()),
            Some(Loaded::Failed) | None => own,
        };
        (self.environment.get_or_init(|| Arc::new(self.user_environment(users))).clone(), true)
    }

    /// The error that bash reports for a script. `None` if bash accepts the script or cannot be asked.
    pub(crate) fn syntax_error(&self, script: &str) -> Option<String> {
        let command = syntax_check(self.bash()?, script);
        let jobs = self.shells.session(1);
        let job = match &self.sandbox {
            None => jobs.start(&command, StartOptions::unconfined()),
            Some(settings) => {
                let sandbox = read_only_sandbox(&jobs, &settings.hidden, &self.tmp)?;
                jobs.start(&command, StartOptions::sandboxed(&sandbox, Arc::new(AllowAll)))
            }
        };
        read_syntax_check(&*job.ok()?)
    }

    /// Secret values in the user's environment and in the session's exported variables. Those of the login
    /// environment are known from the first command on.
    pub(crate) fn secrets(&self, session: &SessionShell) -> Secrets {
        // Read each time: the shell may run again for the secrets that the cache omits.
        let login = match self.login.as_ref().map(Login::now) {
            Some(Loaded::Variables(login)) => Some(login),
            _ => None,
        };
        session.secrets(login, |login, carried| self.secrets_in(login, carried))
    }

    /// Secret values in the host's own environment, the login environment and the exported variables.
    fn secrets_in(&self, login: Option<&Variables>, carried: Option<&Variables>) -> Secrets {
        let is_secret = |(name, _): &&(OsString, OsString)| is_secret(&name.to_string_lossy());
        let own = self.own.get_or_init(|| own_variables(&self.source));
        let login = login.map(|login| user_environment(login.clone()).secrets).unwrap_or_default();
        let own = own.iter().filter(is_secret);
        let carried = carried.into_iter().flatten();
        let all = own.chain(&login).chain(carried.filter(is_secret));
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        let all = all.filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let injected = self.inspection().map_or(&[][..], Inspection::secrets);
        Secrets::known(injected.iter().cloned().chain(all))
    }

    pub(crate) fn bash(&self) -> Option<&Path> {
        self.bash.get_or_init(find_bash).as_deref()
    }
}

/// A sandbox without write access, for the runtime's own commands: an earlier command may have written the
/// files that they read.
fn read_only_sandbox(jobs: &Jobs, hidden: &PathSet, tmp: &Path) -> Option<Sandbox> {
    Some(Sandbox {
        writable: Vec::new(),
        read_only: Vec::new(),
        hidden: hidden.clone(),
        replaced: Vec::new(),
        tmp: jobs.tmp(tmp).ok()?,
        supervise_reads: false,
        network: Network::None,
        limits: toolcrib_exec::Limits::DEFAULT,
    })
}

fn own_variables(source: &Option<EnvironmentSource>) -> Variables {
    source.as_ref().map(|source| source()).unwrap_or_default()
}

fn user_environment(variables: Variables) -> Environment {
    Environment::from_user(variables, |value| Secrets::default().are_in(value))
}
