//! The parts of a runtime that calls use.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib_exec::PinnedPath;
use toolcrib_fs::HardLinks;
use toolcrib_policy::Access;
use toolcrib_search::ListingCaches;
use toolcrib_text::Secrets;

use crate::call_log::CallLog;
use crate::call_policy::CallPolicy;
use crate::call_recorder::Recorder;
use crate::command_state::ShellHost;
use crate::decision_log::DecisionLog;
use crate::error::{Error, ErrorKind};
use crate::history::History;
use crate::language_servers::LanguageServers;
use crate::limits::Limits;
use crate::outlines::Outlines;
use crate::quota::{CommandPlace, Quota};
use crate::reachable_paths::Paths;
use crate::session::Session;
use crate::type_map::TypeMap;
use crate::write_gate::WriteGate;

/// The services of a runtime. A function takes the service that it needs, not all of them.
pub(crate) struct Services {
    pub(crate) paths: Arc<Paths>,
    pub(crate) policy: CallPolicy,
    pub(crate) history: History,
    pub(crate) decisions: DecisionLog,
    pub(crate) calls: Arc<CallLog>,
    /// `None` if the host has no helper program.
    pub(crate) commands: Option<Arc<ShellHost>>,
    /// Directories besides the roots that commands may write, opened when the runtime was built.
    pub(crate) caches: Vec<PinnedPath>,
    /// Listing caches and indexes of earlier searches.
    pub(crate) listings: ListingCaches,
    /// Definitions of files that were parsed lately.
    pub(crate) outlines: Outlines,
    /// The host's own program, which decodes PDFs and images.
    pub(crate) helper: Option<PathBuf>,
    pub(crate) limits: Limits,
    pub(crate) hard_links: HardLinks,
    /// Language servers that check edited files, if that is on.
    pub(crate) language_servers: Option<Arc<LanguageServers>>,
    /// Receives calls, commands and connections.
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    /// Whether the workspace may be changed now, if the host decides that.
    pub(crate) write_gate: Option<Arc<dyn WriteGate>>,
    /// Limits of the host on calls and commands.
    pub(crate) quota: Option<Arc<dyn Quota>>,
    /// Values of the host for its own tools.
    pub(crate) states: TypeMap,
}

impl Services {
    /// Counts a call, and fails if it is beyond a limit of the host.
    pub(crate) fn begin_call(&self) -> Result<(), Error> {
        self.quota.as_ref().map_or(Ok(()), |quota| Ok(quota.begin_call()?))
    }

    /// Takes a place for a command among those that the host allows.
    pub(crate) fn begin_command(&self) -> Result<Option<Box<dyn CommandPlace>>, Error> {
        self.quota.as_ref().map(|quota| Ok(quota.begin_command()?)).transpose()
    }

    /// Fails if the host does not allow a call with these accesses now: because the workspace may not be changed from here, or
    /// because of a limit on commands.
    pub(crate) fn check_gates(&self, accesses: &[Access]) -> Result<(), Error> {
        self.check_write_gate(accesses)?;
        let is_command = |access: &Access| matches!(access, Access::Command(_));
        let quota = self.quota.as_ref().filter(|_| accesses.iter().any(is_command));
        quota.map_or(Ok(()), |quota| Ok(quota.check_command()?))
    }

    /// Fails if a call with these accesses could change the workspace, and the host does not allow that now. A command
    /// can always change it.
    fn check_write_gate(&self, accesses: &[Access]) -> Result<(), Error> {
        let changes = |access: &Access| {
            matches!(access, Access::Write(_) | Access::WriteAny | Access::Command(_))
        };
        let gate = self.write_gate.as_ref().filter(|_| accesses.iter().any(changes));
        let Some(why) = gate.and_then(|gate| gate.check().err()) else { return Ok(()) };
        let message = format!("the workspace cannot be changed from here now: {why}");
        Err(Error::new(ErrorKind::ReadOnly, message)
            .hint("Reading works. Repeat the call later, or tell the user.")
            .nothing_written())
    }

    /// Values to redact from records and command output.
    pub(crate) fn secrets(&self, session: &Session) -> Secrets {
        let shell = self.commands.as_deref().zip(session.shell());
        shell.map_or_else(Secrets::default, |(host, shell)| host.secrets(shell))
    }
}
