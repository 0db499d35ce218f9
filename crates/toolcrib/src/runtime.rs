//! The runtime.

mod builder;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcrib_exec::PinnedPath;
use toolcrib_fs::{HardLinks, Journal, Recovered, ResolvedPath, Workspace};
use toolcrib_policy::{Access, Effect, Policy, Protection};
use toolcrib_search::ListingCaches;
use toolcrib_text::{Secrets, visible_name};

pub use self::builder::RuntimeBuilder;
use crate::call_recorder::{Record, Recorder};
use crate::command_state::ShellHost;
use crate::decision_log::DecisionKeeping;
use crate::hidden_paths::Hidden;
use crate::host_values::HostValues;
use crate::limits::Limits;
use crate::sandbox::PathRules;
use crate::session::{NoticeSink, Session};
use crate::tool_table::Table;

/// State shared by all calls: tools, roots, policy, journal, limits.
///
/// One runtime serves any number of sessions and threads. Create it with [`Runtime::builder`], create a
/// [`Session`] per agent, and make calls with [`Runtime::call`]. The [crate page](crate) has an example.
pub struct Runtime {
    table: Table,
    workspace: Workspace,
    policy: Arc<Policy>,
    limits: Limits,
    absolute_paths: bool,
    hard_links: HardLinks,
    protection: Protection,
    path_rules: Arc<PathRules>,
    caches: Vec<PinnedPath>,
    journal: Option<Journal>,
    recovered: Vec<Recovered>,
    hidden: Arc<Hidden>,
    recorder: Option<Box<dyn Recorder>>,
    states: HostValues,
    helper: Option<PathBuf>,
    shell_host: Option<ShellHost>,
    sessions: AtomicU64,
    tables: ListingCaches,
    decision_keeping: DecisionKeeping,
    home: Option<PathBuf>,
    notice: Option<NoticeSink>,
}

impl Runtime {
    /// Starts building a runtime. At least one root is required.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Creates a session whose working directory is the first root.
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
        if self.policy.depends_on_tool() {
            Cow::Owned(self.policy.for_tool(tool))
        } else {
            Cow::Borrowed(&self.policy)
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

    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn absolute_paths(&self) -> bool {
        self.absolute_paths
    }

    /// Returns the changes that a crash had interrupted, and what was done about each when the runtime was
    /// built.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    pub(crate) fn hard_links(&self) -> HardLinks {
        self.hard_links
    }

    pub(crate) fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Rules for files whose protection does not follow from a name pattern.
    pub(crate) fn path_rules(&self) -> &Arc<PathRules> {
        &self.path_rules
    }

    /// Directories besides the roots that commands may write, opened when the runtime was built.
    pub(crate) fn caches(&self) -> &[PinnedPath] {
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

    /// Values to redact from records and command output.
    pub(crate) fn secrets(&self, session: &Session) -> Secrets {
        let host = self.shell_host.as_ref();
        host.map_or_else(Secrets::default, |host| host.secrets(session.shell()))
    }

    pub(crate) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// Hidden paths of the host and of other servers.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        self.hidden.own()
    }

    /// A resolved path as replies show it: on one line, and relative to `directory` if it is below it.
    pub(crate) fn show_path(&self, directory: &ResolvedPath, path: &Path) -> String {
        let shown = match path.strip_prefix(directory.path()) {
            Ok(relative) if !self.absolute_paths => relative,
            _ => path,
        };
        let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { shown };
        visible_name(shown.as_os_str().as_encoded_bytes())
    }

    /// Listing caches of earlier searches.
    pub(crate) fn tables(&self) -> &ListingCaches {
        &self.tables
    }

    pub(crate) fn decision_keeping(&self) -> &DecisionKeeping {
        &self.decision_keeping
    }

    pub(crate) fn states(&self) -> &HostValues {
        &self.states
    }

    pub(crate) fn record(&self, record: Record) {
        if let Some(recorder) = &self.recorder {
            recorder.record(record);
        }
    }
}
