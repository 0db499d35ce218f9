//! The builder of a runtime.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use toolcrib_exec::{Network, OuterWall, PinnedPath};
use toolcrib_fs::{Caps, HardLinks, Journal, ReservedPaths, Root, RootMode, Workspace, real_path};
use toolcrib_net::{ProxiedResolver, Resolver, SystemResolver, UpstreamProxies};
use toolcrib_policy::{Outside, Policy, Profile, Protection, Rules, SettingHints};
use toolcrib_search::{IndexSettings, ListingCaches};

use super::Runtime;
use crate::active_rules::{ActiveRules, RulesSource};
use crate::call_log::CallLog;
use crate::call_policy::CallPolicy;
use crate::call_recorder::Recorder;
use crate::command_state::{EnvironmentSource, ShellHost, ShellSettings};
use crate::decision_log::DecisionLog;
use crate::error::{Error, ErrorKind};
use crate::helper::is_helper_ready;
use crate::hidden_paths::Hidden;
use crate::history::History;
use crate::inspection_settings::InspectionSettings;
use crate::journal_errors::journal_error;
use crate::language_servers::{LanguageServer, LanguageServers};
use crate::limits::Limits;
use crate::message_names::SHELL_TOOL;
use crate::network::Inspection;
use crate::outlines::Outlines;
use crate::path_rules::PathRules;
use crate::reachable_paths::Paths;
use crate::sandbox_settings::SandboxSettings;
use crate::services::Services;
use crate::session::NoticeSink;
use crate::tool::{Entry, Tool};
use crate::tool_selection::ToolSelection;
use crate::type_map::TypeMap;
use crate::user_machine;
use crate::write_gate::WriteGate;

/// This program, as [`RuntimeBuilder::helper`].
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Processes of language servers, running and ended.
const MAX_SERVER_JOBS: usize = 64;

/// Settings of a [`Runtime`].
///
/// The library reads no configuration, no home directory and no environment by itself; the host passes
/// everything in.
///
/// ```
/// # fn main() -> Result<(), toolcrib::Error> {
/// use toolcrib::{Call, ErrorKind, Options, Profile, Runtime};
///
/// let runtime = Runtime::builder()
///     .root(env!("CARGO_MANIFEST_DIR"))
///     .profile(Profile::ReadOnly)
///     .build()?;
/// let session = runtime.session();
/// let call = Call::new("Write", serde_json::json!({"file_path": "new.txt", "content": "text"}));
/// let error = runtime.call(&session, call, Options::default()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Denied);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "`build` makes the runtime"]
pub struct RuntimeBuilder {
    roots: Vec<(PathBuf, RootMode)>,
    profile: Profile,
    rules: Rules,
    rules_file: Option<String>,
    settings: SettingHints,
    rules_source: Option<Arc<dyn RulesSource>>,
    home: Option<PathBuf>,
    limits: Limits,
    absolute_paths: bool,
    hard_links: HardLinks,
    protection: Protection,
    journal: Option<(PathBuf, Caps)>,
    own: Vec<PathBuf>,
    registry: Option<PathBuf>,
    recorder: Option<Arc<dyn Recorder>>,
    states: TypeMap,
    helper: Option<PathBuf>,
    environment: Option<EnvironmentSource>,
    login_shell: Option<PathBuf>,
    sandbox: SandboxSettings,
    index: IndexSettings,
    outside: Option<Outside>,
    notice: Option<NoticeSink>,
    tools: ToolSelection,
    resolver: Option<Arc<dyn Resolver>>,
    proxies: UpstreamProxies,
    inspection: InspectionSettings,
    server_id: Option<String>,
    language_servers: Vec<LanguageServer>,
    audits: bool,
    hidden_around: Option<PathBuf>,
    max_running_commands: Option<usize>,
    write_gate: Option<Arc<dyn WriteGate>>,
}

impl RuntimeBuilder {
    /// Adds the settings of the command-line program for the user of this machine: commands, PDFs and images by this
    /// program as its own helper, the user's environment, home directory and login shell, hidden paths with secrets,
    /// and the journal in the user's state directory. Later settings replace these.
    ///
    /// The program must call [`run_helper`](crate::run_helper) first in `main`. Without it, commands, PDFs and images
    /// fail with an error that says so.
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use toolcrib::{Call, Options, Runtime};
    ///
    /// fn main() -> ExitCode {
    ///     if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
    ///         return code;
    ///     }
    ///     let runtime = match Runtime::builder().standard().root(".").build() {
    ///         Ok(runtime) => runtime,
    ///         Err(error) => panic!("{error}"),
    ///     };
    ///     let call = Call::new("Bash", serde_json::json!({"command": "cargo test"}));
    ///     let reply = runtime.call(&runtime.session(), call, Options::default());
    ///     println!("{}", reply.map_or_else(|error| error.text(), |reply| reply.text().to_owned()));
    ///     ExitCode::SUCCESS
    /// }
    /// ```
    pub fn standard(mut self) -> Self {
        self.helper = Some(OWN_PROGRAM.into());
        self = self.environment(user_machine::environment);
        self.home = user_machine::home();
        self.login_shell = user_machine::login_shell();
        // An empty list cannot name a path that is missing from the table.
        self.sandbox.hidden = user_machine::secret_paths::hidden_paths(&[]).unwrap_or_default();
        self.registry = user_machine::registry_directory();
        self.own.extend(user_machine::configuration_directory());
        self.own.extend(user_machine::state_directory());
        self.journal = user_machine::state_directory().map(|state| (state, Caps::default()));
        self
    }

    /// Adds a directory that the tools may read and write. The first root is the working directory of new
    /// sessions.
    pub fn root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push((directory.into(), RootMode::ReadWrite));
        self
    }

    /// Adds a directory that the tools may only read.
    pub fn read_only_root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push((directory.into(), RootMode::ReadOnly));
        self
    }

    /// Sets how much is allowed without approval. Defaults to [`Profile::Workspace`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets rules that allow, ask about or deny files, commands and hosts, in addition to the profile.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the file that the user adds rules to, if that is not the usual one. Messages name it in the commands that add a
    /// rule.
    pub fn rules_file(mut self, file: &Path) -> Self {
        self.rules_file = Some(file.display().to_string());
        self
    }

    /// Sets how messages say that a setting is changed: with which configuration file, and which settings a flag
    /// decides.
    pub fn setting_hints(mut self, settings: SettingHints) -> Self {
        self.settings = settings;
        self
    }

    /// Sets where changed rules come from. It is asked before each call. Rules that cannot be used are not applied: the previous ones
    /// stay in force, and replies say why. [`rules`](Self::rules) are the first.
    pub fn rules_source(mut self, source: Arc<dyn RulesSource>) -> Self {
        self.rules_source = Some(source);
        self
    }

    /// Sets what file tools may read outside the roots. By default the profile decides: `workspace` and `open`
    /// allow what commands may read, `cautious` asks, `read-only` denies.
    pub fn outside(mut self, outside: Outside) -> Self {
        self.outside = Some(outside);
        self
    }

    /// Sets a callback for messages to the user that belong to no reply: at the end of a session, that files in
    /// its private `/tmp` were removed.
    pub fn notices(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(sink));
        self
    }

    /// Sets the user's home directory, which `~` means in paths, rules and commands.
    pub fn home(mut self, directory: impl Into<PathBuf>) -> Self {
        self.home = Some(directory.into());
        self
    }

    /// Sets the limits of calls. Defaults to [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Requires absolute paths in calls and shows absolute paths in replies. By default both forms are
    /// accepted, and replies show relative paths, which cost a model fewer tokens.
    pub fn absolute_paths(mut self, only: bool) -> Self {
        self.absolute_paths = only;
        self
    }

    /// Sets what happens to the other hard links of a changed file.
    pub fn hard_links(mut self, hard_links: HardLinks) -> Self {
        self.hard_links = hard_links;
        self
    }

    /// Sets the protected files, which no tool writes.
    pub fn protection(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// Enables the journal, in a directory of its own. It makes changes undoable, and a change of several files
    /// atomic even if the process dies. The directory must not be accessible to other users; otherwise
    /// [`RuntimeBuilder::build`] fails.
    pub fn journal(mut self, directory: impl Into<PathBuf>, caps: Caps) -> Self {
        self.journal = Some((directory.into(), caps));
        self
    }

    /// Whether calls are recorded in the audit log of the workspace, in the directory of the journal: a chain of hashes.
    /// See [`crate::Runtime::verify_audit`]; [`Caps::audit_bytes`] is its limit.
    pub fn audit(mut self, audits: bool) -> Self {
        self.audits = audits;
        self
    }

    /// Hides a file or directory of the host from all tools, even inside a root.
    pub fn own(mut self, path: impl Into<PathBuf>) -> Self {
        self.own.push(path.into());
        self
    }

    /// Sets a directory in which the servers of one user register their own paths. Registered paths are hidden
    /// from all tools, including those registered later.
    pub fn registry(mut self, directory: impl Into<PathBuf>) -> Self {
        self.registry = Some(directory.into());
        self
    }

    /// Sets the receiver of call records.
    pub fn recorder(mut self, recorder: impl Recorder + 'static) -> Self {
        self.recorder = Some(Arc::new(recorder));
        self
    }

    /// Sets what decides, call by call, whether the workspace may be changed now.
    pub fn write_gate(mut self, gate: Arc<dyn WriteGate>) -> Self {
        self.write_gate = Some(gate);
        self
    }

    /// Sets the host's own program, whose `main` calls [`crate::run_helper`]. Commands, PDFs, images and
    /// patterns with look-around run in child processes of it; without a helper they are not supported.
    pub fn helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// Sets the source of the environment of commands. It is called once, at the first command. Secrets and
    /// variables that make programs execute code are removed. Without a source, commands get a minimal
    /// environment.
    pub fn environment(
        mut self,
        source: impl Fn() -> Vec<(OsString, OsString)> + Send + Sync + 'static,
    ) -> Self {
        self.environment = Some(Box::new(source));
        self
    }

    /// Sets the user's login shell, whose environment commands get. The shell runs in the background during
    /// [`RuntimeBuilder::build`] and after it, without write access. The result is stored with the journal
    /// until a file that the shell reads has changed.
    pub fn login_shell(mut self, shell: impl Into<PathBuf>) -> Self {
        self.login_shell = Some(shell.into());
        self
    }

    /// Sets the sandbox of commands: network, caches, hidden paths. The profile `open` has no sandbox. Hidden
    /// paths apply to file tools too, in every profile.
    pub fn sandbox(mut self, settings: SandboxSettings) -> Self {
        self.sandbox = settings;
        self
    }

    /// Hides a directory that contains the roots, except for the roots: the workspaces of others. Commands in a sandbox do
    /// not see it, and no file tool reads or lists it, in every profile.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use toolcrib::{Call, ErrorKind, Options, Runtime};
    ///
    /// let all = tempfile::tempdir()?;
    /// for workspace in ["mine", "other"] {
    ///     std::fs::create_dir(all.path().join(workspace))?;
    ///     std::fs::write(all.path().join(workspace).join("a.txt"), "text")?;
    /// }
    /// let runtime =
    ///     Runtime::builder().root(all.path().join("mine")).hidden_around(all.path()).build()?;
    /// let session = runtime.session();
    /// let read = |path: &str| {
    ///     let call = Call::new("Read", serde_json::json!({"file_path": path}));
    ///     runtime.call(&session, call, Options::default())
    /// };
    /// assert!(read("a.txt").is_ok());
    /// assert_eq!(read("../other/a.txt").unwrap_err().kind(), ErrorKind::Protected);
    /// # Ok(())
    /// # }
    /// ```
    pub fn hidden_around(mut self, directory: impl Into<PathBuf>) -> Self {
        self.hidden_around = Some(directory.into());
        self
    }

    /// Limits the running commands of all sessions together. A command above it is refused with kind
    /// [`crate::ErrorKind::Limit`]. By default only the commands of one session are limited.
    pub fn max_running_commands(mut self, max: usize) -> Self {
        self.max_running_commands = Some(max);
        self
    }

    /// Sets how the names of hosts are resolved that commands connect to with [`Network::List`]. Defaults to the
    /// resolver of the system.
    pub fn resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Sets the proxies through which commands reach hosts with [`Network::List`]. A proxy resolves the names, so
    /// the addresses of hosts are not checked. Defaults to none.
    pub fn upstream_proxies(mut self, proxies: UpstreamProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Sets credentials for requests of commands to some hosts, and how hosts are verified whose requests are inspected.
    /// They need [`Network::List`] and the feature `inspect`.
    pub fn inspection(mut self, settings: InspectionSettings) -> Self {
        self.inspection = settings;
        self
    }

    /// Sets which trees get a search index, and its maximum size.
    pub fn index(mut self, settings: IndexSettings) -> Self {
        self.index = settings;
        self
    }

    /// Sets language servers that check edited files. Replies to edits name the errors that are new. The servers run in
    /// the sandbox, without write access and network, also with the profile `open`; where there is no sandbox, none
    /// runs. [`LanguageServer::known`] has a list. By default there are none.
    pub fn language_servers(mut self, servers: Vec<LanguageServer>) -> Self {
        self.language_servers = servers;
        self
    }

    /// Adds your own tool. It is decoded, authorized and recorded like a built-in one, on every transport. `build`
    /// fails if a tool with that name exists.
    pub fn register<T: Tool>(mut self) -> Self {
        self.tools.register(Entry::of::<T>());
        self
    }

    /// Replaces the tool of that name by your own. `build` fails if there is none.
    pub fn replace<T: Tool>(mut self) -> Self {
        self.tools.replace(Entry::of::<T>());
        self
    }

    /// Keeps only these tools, each by its name in any dialect. Others are neither listed nor callable. `build` fails
    /// for an unknown name.
    pub fn only_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools.only(names.into_iter().map(Into::into).collect());
        self
    }

    /// Removes a tool: it is neither listed nor callable. BashOutput, KillShell and ListShells are removed with Bash,
    /// unless [`RuntimeBuilder::only_tools`] names them. `build` fails for an unknown name.
    pub fn remove_tool(mut self, name: impl Into<String>) -> Self {
        self.tools.remove(name.into());
        self
    }

    /// Adds a value for your own tools, which get it with [`crate::Cx::state`]. One value per type.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.put(value);
        self
    }

    /// Sets the beginning of the ids of logged calls, which must be unique over processes and time. Defaults to the
    /// number of the process and random digits.
    pub fn server_id(mut self, id: impl Into<String>) -> Self {
        self.server_id = Some(id.into());
        self
    }

    /// Builds the runtime: opens the roots and the journal, and recovers changes that a crash interrupted.
    ///
    /// # Errors
    ///
    /// Fails if there is no root, if a root cannot be opened, or if the journal directory is unusable.
    pub fn build(mut self) -> Result<Runtime, Error> {
        // Otherwise each command would start the whole program once more.
        let is_own = |program: &PathBuf| program == Path::new(OWN_PROGRAM);
        self.helper = self.helper.filter(|program| !is_own(program) || is_helper_ready());
        check_outer_wall(self.sandbox.outer)?;
        let table = self.tools.table(self.profile)?;
        let rules = table.resolve_rules(self.rules)?;
        let workspace = open_roots(self.roots)?;
        let journal = self.journal.map(|(directory, caps)| Journal::open(directory, caps));
        let journal = journal.transpose().map_err(|error| journal_error(&error))?;
        let mut own = self.own;
        own.extend(journal.as_ref().map(|journal| journal.directory().to_owned()));
        let (caches, pinned_caches) = open_caches(&self.sandbox.caches);
        let registry = self.registry.map(ReservedPaths::new);
        let around = self.hidden_around.map(|directory| real_path(&directory));
        self.sandbox.hidden.add(around.as_slice());
        let hidden = Hidden::new(&own, self.sandbox.hidden.clone(), registry, &workspace);
        let hidden = Arc::new(hidden.with_other_workspaces(around));
        let is_listed = self.sandbox.network == Network::List && self.profile != Profile::Open;
        let is_inspected = !self.inspection.injections.is_empty() || rules.name_requests();
        let inspection = (is_listed && is_inspected).then(|| Inspection::new(self.inspection));
        let inspection = inspection.transpose().map_err(Error::invalid)?;
        let settings = ShellSettings {
            directory: journal.as_ref().map(|journal| journal.directory().to_owned()),
            workspace: workspace.roots().next().map(|root| root.path().to_owned()),
            environment: self.environment,
            login_shell: self.login_shell,
            sandbox: (self.profile != Profile::Open).then_some(self.sandbox),
            resolver: Arc::new(ProxiedResolver {
                resolver: self.resolver.unwrap_or_else(|| Arc::new(SystemResolver)),
                proxies: self.proxies,
            }),
            inspection,
            max_running: self.max_running_commands,
        };
        let commands = self.helper.as_ref();
        let commands = commands.map(|program| Arc::new(ShellHost::new(program, settings)));
        let may_run = table.find(SHELL_TOOL).is_ok();
        self.language_servers.retain(|server| may_run || !server.runs_project_programs);
        let language_servers = commands.as_ref().filter(|_| !self.language_servers.is_empty());
        let language_servers = language_servers.map(|host| {
            let jobs = host.own_jobs(MAX_SERVER_JOBS);
            Arc::new(LanguageServers::new(self.language_servers, jobs))
        });
        let indexes = journal.as_ref().map(|journal| journal.directory().join("index"));
        // Files can be read without a working journal; a change reports the failure itself.
        let recovered =
            journal.as_ref().map(|journal| journal.recover(&workspace).unwrap_or_default());
        let recovered = recovered.unwrap_or_default();
        let policy = Policy::new(self.profile)
            .rules(rules)
            .rules_file(self.rules_file)
            .setting_hints(self.settings.clone())
            .network_by_name(is_listed)
            .protection(self.protection.clone());
        let policy = self.outside.into_iter().fold(policy, Policy::outside);
        let policy = with_locations(policy, &workspace, self.home.clone());
        let outside = policy.outside_access();
        let active = Arc::new(ActiveRules::new(policy, self.rules_source));
        let path_rules = PathRules::new(
            workspace.clone(),
            caches,
            active.clone(),
            self.protection.clone(),
            hidden.clone(),
        );
        let decisions = DecisionLog::new(journal.clone(), &workspace);
        let calls = Arc::new(CallLog::new(
            journal.clone(),
            self.server_id,
            &workspace,
            self.profile,
            self.audits,
        ));
        let paths = Arc::new(Paths {
            workspace,
            hidden,
            protection: self.protection,
            path_rules: Arc::new(path_rules),
            home: self.home,
            only_absolute: self.absolute_paths,
            profile: self.profile,
            outside,
            settings: self.settings,
            commands: commands.clone(),
        });
        let services = Services {
            history: History::new(journal, paths.clone(), self.limits),
            paths,
            policy: CallPolicy::new(active, commands.clone()),
            decisions,
            calls,
            commands,
            caches: pinned_caches,
            listings: ListingCaches::new(self.index, indexes),
            outlines: Outlines::default(),
            helper: self.helper,
            limits: self.limits,
            hard_links: self.hard_links,
            language_servers,
            recorder: self.recorder,
            write_gate: self.write_gate,
            quota: None,
            states: self.states,
        };
        Ok(Runtime {
            table,
            services,
            recovered,
            sessions: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            notice: self.notice,
        })
    }
}

/// Adds the directories in which rules apply.
fn with_locations(policy: Policy, workspace: &Workspace, home: Option<PathBuf>) -> Policy {
    let roots = workspace.roots().map(|root| root.path().to_owned()).collect();
    policy.locations(roots, home).inside(workspace.roots().flat_map(Root::spellings))
}

/// Fails if the sandbox that should be around this system is not there: commands would run without any.
fn check_outer_wall(declared: Option<OuterWall>) -> Result<(), Error> {
    match declared.filter(|wall| !wall.is_here()) {
        None => Ok(()),
        Some(wall) => {
            let (name, shown) = (wall.name(), wall.shown());
            let message = format!("outer = \"{name}\", but this system is not in {shown}");
            Err(Error::new(ErrorKind::Unsupported, message).hint(format!(
                "Its kernel does not name itself as that of {shown}. Remove the setting."
            )))
        }
    }
}

fn open_roots(roots: Vec<(PathBuf, RootMode)>) -> Result<Workspace, Error> {
    let open = |(path, mode): (PathBuf, RootMode)| {
        Root::open(&path, mode).map_err(|error| Error::from_fs(&path.display().to_string(), &error))
    };
    let roots = roots.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    Workspace::new(roots).map_err(|error| Error::from_fs("", &error))
}

/// Opens the caches that exist. Missing ones are not writable for commands either.
fn open_caches(caches: &[PathBuf]) -> (Option<Workspace>, Vec<PinnedPath>) {
    let opened = caches.iter().filter_map(|cache| Root::open(cache, RootMode::ReadWrite).ok());
    let pinned = caches.iter().filter_map(|cache| PinnedPath::of(real_path(cache)).ok());
    (Workspace::new(opened.collect()).ok(), pinned.collect())
}
