//! The runtime: tools, directories, rules.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcrib_exec::HeldPath;
use toolcrib_fs::{
    Caps, HardLinks, Journal, Recovered, Registry, ResolvedPath, Root, RootMode, Workspace,
    real_path,
};
use toolcrib_policy::{Access, Effect, Outside, Policy, Profile, Protection, Rules};
use toolcrib_search::{IndexSettings, ListingCaches};
use toolcrib_text::{Secrets, visible_name};

use crate::call_record::{Record, Recorder};
use crate::decisions::DecisionKeeping;
use crate::error::Error;
use crate::hidden_paths::Hidden;
use crate::history::journal_error;
use crate::limits::Limits;
use crate::sandbox::PathRules;
use crate::sandbox::SandboxSettings;
use crate::session::{NoticeSink, Session};
use crate::shell::{EnvironmentSource, ShellHost, ShellSettings};
use crate::tool::{Entry, Tool};
use crate::tool_selection::{SHELL_TOOL, ToolSelection};
use crate::tool_state::States;
use crate::tool_table::Table;

/// Everything that calls have in common. One of these serves any number of sessions and threads.
pub struct Runtime {
    table: Table,
    workspace: Workspace,
    policy: Arc<Policy>,
    limits: Limits,
    absolute_paths: bool,
    hard_links: HardLinks,
    protection: Protection,
    path_rules: Arc<PathRules>,
    caches: Vec<HeldPath>,
    journal: Option<Journal>,
    recovered: Vec<Recovered>,
    hidden: Arc<Hidden>,
    recorder: Option<Box<dyn Recorder>>,
    states: States,
    helper: Option<PathBuf>,
    shell_host: Option<ShellHost>,
    sessions: AtomicU64,
    tables: ListingCaches,
    decision_keeping: DecisionKeeping,
    home: Option<PathBuf>,
    notice: Option<NoticeSink>,
}

impl Runtime {
    /// Begins a runtime; it needs at least one root.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Begins a session in the first root.
    pub fn session(&self) -> Session {
        let id = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let shell = self.shell_host.as_ref().map(ShellHost::session);
        Session::new(id, self.workspace.top(), shell, self.notice.clone())
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The rules for calls of one tool.
    pub(crate) fn policy_of(&self, tool: &str) -> Cow<'_, Policy> {
        match self.policy.depends_on_tool() {
            false => Cow::Borrowed(&self.policy),
            true => Cow::Owned(self.policy.for_tool(tool)),
        }
    }

    /// The rules that decide on a call. Whether commands are confined is found out by trying, so only for
    /// calls that run one.
    pub(crate) fn policy_for(
        &self,
        session: &Session,
        tool: &str,
        accesses: &[Access],
    ) -> Cow<'_, Policy> {
        let runs = accesses.iter().any(|access| access.effect() == Effect::Command);
        let confined = runs && self.shell_host.as_ref().is_some_and(ShellHost::confines);
        let own = session.opened_roots();
        let policy = self.policy_of(tool);
        if !confined && own.is_empty() {
            return policy;
        }
        let own = own.iter().flat_map(|root| root.spellings());
        Cow::Owned(policy.into_owned().confined(confined).inside(own))
    }

    /// The user's home directory, if the host has named it.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn absolute_paths(&self) -> bool {
        self.absolute_paths
    }

    /// What became of changes that a crash had interrupted, found when the runtime was built.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    pub(crate) fn hard_links(&self) -> HardLinks {
        self.hard_links
    }

    pub(crate) fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Which files commands and tools may not change, for reasons that a pattern does not show.
    pub(crate) fn path_rules(&self) -> &Arc<PathRules> {
        &self.path_rules
    }

    /// What commands may write besides the roots, as it was when the runtime was built.
    pub(crate) fn caches(&self) -> &[HeldPath] {
        &self.caches
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    pub(crate) fn helper(&self) -> Option<&Path> {
        self.helper.as_deref()
    }

    pub(crate) fn shell_host(&self) -> Option<&ShellHost> {
        self.shell_host.as_ref()
    }

    /// What neither records nor the output of commands show.
    pub(crate) fn secrets(&self, session: &Session) -> Secrets {
        let host = self.shell_host.as_ref();
        host.map_or_else(Secrets::default, |host| host.secrets(session.shell()))
    }

    /// The places that no tool reads, writes or lists.
    pub(crate) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// Those of them that are the host's own, or another server's.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        self.hidden.own()
    }

    /// A real path as replies show it: on one line, and relative to `directory` where it is in it.
    pub(crate) fn show_path(&self, directory: &ResolvedPath, path: &Path) -> String {
        let shown = match path.strip_prefix(directory.path()) {
            Ok(relative) if !self.absolute_paths => relative,
            _ => path,
        };
        let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { shown };
        visible_name(shown.as_os_str().as_encoded_bytes())
    }

    /// What earlier searches have listed.
    pub(crate) fn tables(&self) -> &ListingCaches {
        &self.tables
    }

    pub(crate) fn decision_keeping(&self) -> &DecisionKeeping {
        &self.decision_keeping
    }

    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    pub(crate) fn record(&self, record: Record) {
        if let Some(recorder) = &self.recorder {
            recorder.record(record);
        }
    }
}

/// What a runtime is made of. The library looks for nothing by itself: no configuration, no home
/// directory, no environment.
#[derive(Default)]
#[must_use = "`build` makes the runtime"]
pub struct RuntimeBuilder {
    roots: Vec<(PathBuf, RootMode)>,
    profile: Profile,
    rules: Rules,
    home: Option<PathBuf>,
    limits: Limits,
    absolute_paths: bool,
    hard_links: HardLinks,
    protection: Protection,
    journal: Option<(PathBuf, Caps)>,
    own: Vec<PathBuf>,
    registry: Option<PathBuf>,
    recorder: Option<Box<dyn Recorder>>,
    states: States,
    helper: Option<PathBuf>,
    environment: Option<EnvironmentSource>,
    login_shell: Option<PathBuf>,
    sandbox: SandboxSettings,
    index: IndexSettings,
    outside: Option<Outside>,
    notice: Option<NoticeSink>,
    tools: ToolSelection,
}

impl RuntimeBuilder {
    /// Opens a directory to the tools. The first is where sessions begin.
    pub fn root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push((directory.into(), RootMode::ReadWrite));
        self
    }

    /// Opens a directory to the tools, for reading.
    pub fn read_only_root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push((directory.into(), RootMode::ReadOnly));
        self
    }

    /// How much may happen without a question.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// What is allowed, asked about or denied besides what the profile says.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// What file tools may read outside the roots. Usually the profile decides: in `workspace` and `open` they
    /// read what commands may read, in `cautious` somebody is asked, in `read-only` nothing is read.
    pub fn outside(mut self, outside: Outside) -> Self {
        self.outside = Some(outside);
        self
    }

    /// Who is told what a person should know when there is no reply to say it in: at the end of a session,
    /// that files in its own `/tmp` were removed with it.
    pub fn notices(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(sink));
        self
    }

    /// The user's home directory: what `~` means in paths, in rules and in commands.
    pub fn home(mut self, directory: impl Into<PathBuf>) -> Self {
        self.home = Some(directory.into());
        self
    }

    /// Other bounds than the usual ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Paths in calls must be absolute, and replies show them so. Usually both kinds are taken, and
    /// replies show relative ones, which cost a model less.
    pub fn absolute_paths(mut self, only: bool) -> Self {
        self.absolute_paths = only;
        self
    }

    /// What becomes of a changed file's other names.
    pub fn hard_links(mut self, hard_links: HardLinks) -> Self {
        self.hard_links = hard_links;
        self
    }

    /// Which files are not written, wherever they are.
    pub fn protection(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// Keeps what changes replace, in a directory of one's own, so that they can be undone, and so that
    /// a change of several files is all or nothing also when the process dies in the middle of it. Only a
    /// directory that no other user can reach is taken: `build` refuses any other.
    pub fn journal(mut self, directory: impl Into<PathBuf>, caps: Caps) -> Self {
        self.journal = Some((directory.into(), caps));
        self
    }

    /// A file or directory that no tool touches, though it lie in a root: the host's own.
    pub fn own(mut self, path: impl Into<PathBuf>) -> Self {
        self.own.push(path.into());
        self
    }

    /// A directory in which the servers of one user tell each other what is their own. What others have
    /// recorded there is no tool's either, now and whenever a record comes.
    pub fn registry(mut self, directory: impl Into<PathBuf>) -> Self {
        self.registry = Some(directory.into());
        self
    }

    /// Somebody who keeps a record of each call.
    pub fn recorder(mut self, recorder: impl Recorder + 'static) -> Self {
        self.recorder = Some(Box::new(recorder));
        self
    }

    /// The host's own program, whose `main` calls [`crate::run_helper`]: what must not take the host with
    /// it is done in a child of it. Without one, PDFs and pictures are not read,
    /// commands not run, and patterns with look-around not searched for.
    pub fn helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// The environment of the user that commands run for. It is asked for once, at the first command; what is
    /// secret in it, and what makes programs run code, is left out. Without one, commands get the least that
    /// programs need.
    pub fn environment(
        mut self,
        source: impl Fn() -> Vec<(OsString, OsString)> + Send + Sync + 'static,
    ) -> Self {
        self.environment = Some(Box::new(source));
        self
    }

    /// The user's shell: what it makes of the environment at a login is for commands too. It is run in the
    /// background, from [`RuntimeBuilder::build`] on and where nothing can be written, and the result is kept with
    /// the journal until a file that the shell reads has changed.
    pub fn login_shell(mut self, shell: impl Into<PathBuf>) -> Self {
        self.login_shell = Some(shell.into());
        self
    }

    /// What commands are held to, besides the roots. With the profile `open` they are held to nothing. What is
    /// hidden is hidden from file tools too, in every profile.
    pub fn sandbox(mut self, settings: SandboxSettings) -> Self {
        self.sandbox = settings;
        self
    }

    /// For which trees searches keep an index, and how large it may be.
    pub fn index(mut self, settings: IndexSettings) -> Self {
        self.index = settings;
        self
    }

    /// Adds a tool of one's own. It gets decoding, permission, records and every transport, as the built-in ones
    /// do. `build` fails if there is a tool of that name.
    pub fn register<T: Tool>(mut self) -> Self {
        self.tools.register(Entry::of::<T>());
        self
    }

    /// Puts a tool of one's own in the place of the tool of that name. `build` fails if there is none.
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

    /// A value that tools of one's own find with [`crate::Cx::state`]; one of each type.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.put(value);
        self
    }

    /// Opens the roots.
    pub fn build(self) -> Result<Runtime, Error> {
        let table = self.tools.table(self.profile)?;
        let rules = table.resolve_rules(self.rules)?;
        let open = |(path, mode): (PathBuf, RootMode)| {
            Root::open(&path, mode)
                .map_err(|error| Error::from_fs(&path.display().to_string(), &error))
        };
        let roots = self.roots.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let workspace = Workspace::new(roots).map_err(|error| Error::from_fs("", &error))?;
        let journal = self.journal.map(|(directory, caps)| Journal::open(directory, caps));
        let journal = journal.transpose().map_err(|error| journal_error(&error))?;
        let mut own: Vec<PathBuf> = self.own.iter().map(|path| real_path(path)).collect();
        own.extend(journal.as_ref().map(|journal| journal.directory().to_owned()));
        // Those that are not there are not written by commands either.
        let caches = self
            .sandbox
            .caches
            .iter()
            .filter_map(|cache| Root::open(cache, RootMode::ReadWrite).ok());
        let caches = Workspace::new(caches.collect()).ok();
        let real_caches = self.sandbox.caches.iter().map(|cache| real_path(cache));
        let held_caches = real_caches.filter_map(|cache| HeldPath::of(cache).ok()).collect();
        let registry = self.registry.map(Registry::new);
        let hidden = Hidden::new(own, &self.sandbox.hidden, registry, &workspace);
        let hidden = Arc::new(hidden);
        let settings = ShellSettings {
            directory: journal.as_ref().map(|journal| journal.directory().to_owned()),
            workspace: workspace.roots().next().map(|root| root.path().to_owned()),
            environment: self.environment,
            login_shell: self.login_shell,
            sandbox: (self.profile != Profile::Open).then_some(self.sandbox),
        };
        let shell_host = self.helper.as_ref().map(|program| ShellHost::new(program, settings));
        let indexes = journal.as_ref().map(|journal| journal.directory().join("index"));
        // A journal that cannot be looked at is no reason not to read files; a change will say so itself.
        let recovered =
            journal.as_ref().map(|journal| journal.recover(&workspace).unwrap_or_default());
        let recovered = recovered.unwrap_or_default();
        let places = workspace.roots().map(|root| root.path().to_owned()).collect();
        let mut policy = Policy::new(self.profile)
            .rules(rules)
            .places(places, self.home.clone())
            .inside(workspace.roots().flat_map(Root::spellings))
            .protection(self.protection.clone());
        if let Some(outside) = self.outside {
            policy = policy.outside(outside);
        }
        let policy = Arc::new(policy);
        let path_rules = PathRules::new(
            workspace.clone(),
            caches,
            Arc::new(policy.for_tool(SHELL_TOOL)),
            self.protection.clone(),
            hidden.clone(),
        );
        Ok(Runtime {
            table,
            workspace,
            policy,
            limits: self.limits,
            absolute_paths: self.absolute_paths,
            hard_links: self.hard_links,
            protection: self.protection,
            path_rules: Arc::new(path_rules),
            caches: held_caches,
            journal,
            recovered,
            hidden,
            recorder: self.recorder,
            states: self.states,
            helper: self.helper,
            shell_host,
            sessions: AtomicU64::new(0),
            tables: ListingCaches::new(self.index, indexes),
            decision_keeping: DecisionKeeping::default(),
            home: self.home,
            notice: self.notice,
        })
    }
}
