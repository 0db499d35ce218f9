//! Running commands of all runtimes of this user, for the operator.

use std::path::PathBuf;
use std::time::SystemTime;

use toolcrib_exec::{Ending, RunningJob, all_running_jobs};
use toolcrib_text::{Secrets, visible, visible_name};

use crate::command_state::SHIM_ARGUMENTS;
use crate::error::{Error, ErrorKind};

/// A running command of any runtime of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCommand {
    /// Unguessable id among all commands of this user. The agent uses another id, which is a counter within its
    /// session.
    pub id: String,
    /// Process id of the runtime.
    pub runtime: i32,
    /// Beginning of the command, with escapes and with secrets masked.
    pub command: String,
    /// Working directory at the start.
    pub directory: PathBuf,
    /// Start time.
    pub started: Option<SystemTime>,
    /// Workspace of the runtime.
    pub workspace: Option<PathBuf>,
    /// Name of the user that the command runs as.
    pub user: String,
    /// Process ids and names of its processes.
    pub processes: Vec<(i32, String)>,
}

/// Returns the running commands of all runtimes of this user, oldest first.
pub fn running_commands() -> Vec<RunningCommand> {
    let shown = |kept: RunningJob| RunningCommand {
        command: Secrets::default().mask_command(&visible(&kept.script)).into_owned(),
        processes: kept.processes.into_iter().map(|process| (process.pid, process.name)).collect(),
        id: kept.id,
        runtime: kept.runtime,
        directory: kept.directory,
        started: kept.started,
        workspace: kept.workspace,
        user: kept.user,
    };
    all_running_jobs(&SHIM_ARGUMENTS).into_iter().map(shown).collect()
}

/// Ends a command of any runtime of this user, with all its processes. Returns the number of ended processes.
///
/// # Errors
///
/// Fails with kind [`ErrorKind::NotFound`] if no such command runs, and with [`ErrorKind::Timeout`] if
/// processes remain.
pub fn end_command(id: &str) -> Result<u64, Error> {
    let Some(kept) = all_running_jobs(&SHIM_ARGUMENTS).into_iter().find(|kept| kept.id == id)
    else {
        let message = format!("there is no running command {}", visible_name(id.as_bytes()));
        return Err(Error::new(ErrorKind::NotFound, message)
            .hint("`toolcrib jobs` lists the ids; they differ from the ids within a session, such as sh_1."));
    };
    match kept.end(Ending::Polite) {
        (ended, true) => Ok(ended),
        (_, false) => {
            Err(Error::new(ErrorKind::Timeout, format!("{id} has processes that did not end"))
                .hint("They may wait for a disk or belong to another user."))
        }
    }
}
