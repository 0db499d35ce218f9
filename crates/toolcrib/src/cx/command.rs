//! The methods of [`Cx`] that find the commands of a session.

use std::path::Path;
use std::sync::Arc;

use toolcrib_exec::{Job, Limits as CommandLimits, Network};
use toolcrib_text::{Secrets, visible_name};

use super::Cx;
use crate::command_state::SessionShell;
use crate::error::{Error, ErrorKind};
use crate::host_asker::HostAsker;
use crate::message_names::LIST_SHELLS;
use crate::network::notes::HostNote;

impl<'a> Cx<'a> {
    /// Values to redact from the output of commands.
    pub(crate) fn secrets(&self) -> Secrets {
        self.services.secrets(self.session)
    }

    /// A resolved path as replies show it.
    pub(crate) fn show_real(&self, path: &Path) -> String {
        self.services.paths.show(self.session.directory(), path)
    }

    /// Makes the directory in which a command ended the default of the next command, if it is inside the
    /// workspace. Returns the directory as replies show it, or as an error the path outside.
    pub(crate) fn carry_directory(&self, ended_in: &Path) -> Result<String, String> {
        let outside = || visible_name(ended_in.as_os_str().as_encoded_bytes());
        let resolved =
            self.services.paths.resolve(self.session, self.session.directory(), ended_in);
        let place = resolved.ok().filter(|place| !place.is_outside()).ok_or_else(outside)?;
        if let Ok(shell) = self.shell() {
            shell.carry_directory(place.path());
        }
        Ok(self.show_place(&place))
    }

    /// The commands of this session.
    pub(crate) fn shell(&self) -> Result<&'a SessionShell, Error> {
        self.session.shell().ok_or_else(no_helper)
    }

    /// Lets this call ask about hosts until the result is dropped. `None` if commands do not reach listed hosts only.
    pub(crate) fn host_asker(&self) -> Option<HostAsker<'a>> {
        let network = self.session.shell()?.network()?.clone();
        Some(HostAsker::new(network, self.services, self.session, (self.call, self.options)))
    }

    /// The hosts that a job tried to reach, since the last reply about it.
    pub(crate) fn take_host_notes(&self, job: &Job) -> Vec<HostNote> {
        let network = self.session.shell().and_then(SessionShell::network);
        network
            .map(|network| network.take_notes(job.id(), job.snapshot().all_exited))
            .unwrap_or_default()
    }

    /// Whether a port of a command is reachable on this machine. `None` if that was not wanted.
    pub(crate) fn exposed(&self, port: u16) -> Option<Result<(), String>> {
        self.session.shell()?.network()?.exposed(port)
    }

    /// The network setting of the sandbox. `None` without a sandbox.
    pub(crate) fn network(&self) -> Option<Network> {
        Some(self.services.commands.as_ref()?.sandbox()?.network)
    }

    /// The resource limits of commands. `None` without a sandbox, which has no limits.
    pub(crate) fn command_limits(&self) -> Option<&'a CommandLimits> {
        Some(&self.services.commands.as_ref()?.sandbox()?.limits)
    }

    /// A job of this session. Ids of other sessions are not found.
    pub(crate) fn job(&self, id: &str) -> Result<Arc<Job>, Error> {
        let jobs = self.shell()?.jobs();
        let job = shell_number(id).and_then(|number| jobs.get(&format!("sh_{number}")));
        job.ok_or_else(|| {
            let ids: Vec<String> = jobs.list().iter().map(|job| job.id().to_owned()).collect();
            let hint = match ids.as_slice() {
                [] => "This session has no jobs.".to_owned(),
                ids => format!("Jobs: {}. {LIST_SHELLS} shows their commands.", ids.join(", ")),
            };
            let message = format!("there is no job {}", visible_name(id.as_bytes()));
            Error::new(ErrorKind::NotFound, message).hint(hint)
        })
    }
}

/// The number in an id: callers write `sh_1`, `bash_1`, `shell_1` or `1`.
fn shell_number(id: &str) -> Option<u64> {
    let id = id.trim().to_ascii_lowercase();
    let prefixes = ["sh", "bash", "shell"].map(|word| [format!("{word}_"), format!("{word}-")]);
    let number = prefixes.as_flattened().iter().find_map(|prefix| id.strip_prefix(prefix.as_str()));
    let number = number.unwrap_or(&id);
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// What the developer of the host program does, if it has no helper.
pub(crate) const HELPER_HINT: &str = "The host program needs RuntimeBuilder::standard or RuntimeBuilder::helper, and first in main: `if let Some(code) = toolcrib::run_helper(std::env::args_os()) { return code; }`.";

pub(super) fn no_helper() -> Error {
    Error::new(ErrorKind::Unsupported, "this host has no helper process to run commands")
        .hint(HELPER_HINT)
}
