//! The runtime.

mod builder;
mod logs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcrib_fs::Recovered;
use toolcrib_policy::Rules;

pub use self::builder::RuntimeBuilder;
use crate::call_command::CallCommand;
use crate::call_recorder::Record;
use crate::command_state::ShellHost;
use crate::error::Error;
use crate::host_tool::HostTool;
use crate::language_servers::SessionChecks;
use crate::quota::Quota;
use crate::services::Services;
use crate::session::{NoticeSink, Session};
use crate::tool_table::Table;

/// The tools, and the state that all calls share: roots, policy, journal, limits.
///
/// One runtime serves any number of sessions and threads. Create it with [`Runtime::builder`], create a
/// [`Session`] per agent, and make calls with [`Runtime::call`]. The [crate page](crate) has an example.
pub struct Runtime {
    table: Table,
    services: Services,
    recovered: Vec<Recovered>,
    sessions: AtomicU64,
    calls: AtomicU64,
    notice: Option<NoticeSink>,
}

impl Runtime {
    /// Starts building a runtime. At least one root is required.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Adds a tool of the host program.
    ///
    /// # Errors
    ///
    /// Fails if the name is taken or not allowed, or if the description is too long.
    pub fn register(&mut self, tool: HostTool) -> Result<(), Error> {
        self.table.register(tool.into_entry())
    }

    /// Sets the limits of the host on calls and commands.
    pub fn set_quota(&mut self, quota: Arc<dyn Quota>) {
        self.services.quota = Some(quota);
    }

    /// Whether the host limits calls or commands now.
    pub fn is_limited(&self) -> bool {
        self.services.quota.as_ref().is_some_and(|quota| quota.is_limited())
    }

    /// Applies the rules of the source if they have changed.
    pub(crate) fn refresh_rules(&self) {
        let rules = self.services.policy.rules();
        let inspects =
            || self.services.commands.as_ref().is_some_and(|host| host.inspection().is_some());
        let usable = |new: Rules| {
            if new.name_requests() && rules.policy().is_network_by_name() && !inspects() {
                return Err(
                    "the first rule with methods or paths needs a restart of the server".to_owned()
                );
            }
            self.table.resolve_rules(new).map_err(|error| error.to_string())
        };
        let problem = rules.refresh(usable);
        if let (Some(problem), Some(notice)) = (problem, &self.notice) {
            notice(&format!("The changed rules are not applied: {problem}"));
        }
    }

    /// Returns the beginning of the ids of logged calls. See [`RuntimeBuilder::server_id`].
    pub fn server_id(&self) -> &str {
        self.services.calls.server()
    }

    /// Creates a session whose working directory is the first root.
    pub fn session(&self) -> Session {
        let id = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let shell = self.services.commands.as_deref().map(ShellHost::session);
        let checks = self.services.language_servers.clone().map(SessionChecks::new);
        let directory = self.services.paths.workspace.top();
        Session::new(id, directory, shell, self.notice.clone(), checks)
    }

    /// Returns the changes that a crash had interrupted, and what was done about each when the runtime was
    /// built.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn services(&self) -> &Services {
        &self.services
    }

    /// A number for a new call.
    pub(crate) fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn record(&self, record: Record) {
        // First in the log: who is told of a call may look for it there.
        let call = record.call;
        let goes_on = self.services.calls.record(&record);
        if let Some(recorder) = &self.services.recorder {
            recorder.record(record);
        }
        if let Some(command) = goes_on {
            self.record_end_of(call, command);
        }
    }

    /// Records the end of a command that goes on after its call. Ending its session ends it.
    fn record_end_of(&self, call: u64, command: CallCommand) {
        let (calls, recorder) = (self.services.calls.clone(), self.services.recorder.clone());
        let wait = move || {
            let end = command.wait_for_end();
            calls.record_command_end(call, &end);
            if let Some(recorder) = recorder {
                recorder.command_ended(call, end);
            }
        };
        // Without the thread, the log has no end of the command.
        let _ = std::thread::Builder::new().name("command end".to_owned()).spawn(wait);
    }
}
