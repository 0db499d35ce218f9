//! The commands of every runtime of this user, for its operator.

use std::path::PathBuf;
use std::time::SystemTime;

use toolcrib_exec::{Ending, RunningJob, all_running_jobs};
use toolcrib_text::{Secrets, visible, visible_name};

use crate::error::{Error, ErrorKind};
use crate::helper::KEEP;

/// A command that some runtime of this user runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCommand {
    /// Its id among all commands of this user, which cannot be guessed. The agent knows it by another, which
    /// counts the commands of its session.
    pub id: String,
    /// The process that it was started by.
    pub runtime: i32,
    /// What it runs, made visible and without secrets, or the beginning of it.
    pub command: String,
    /// Where it began.
    pub directory: PathBuf,
    /// When.
    pub started: Option<SystemTime>,
    /// The workspace that it was started in.
    pub workspace: Option<PathBuf>,
    /// The user that it runs as.
    pub user: String,
    /// Its processes: their numbers and names.
    pub processes: Vec<(i32, String)>,
}

/// Every command that a runtime of this user runs, the oldest first.
pub fn running_commands() -> Vec<RunningCommand> {
    let shown = |kept: RunningJob| RunningCommand {
        command: Secrets::default().mask(&visible(&kept.script)).into_owned(),
        processes: kept.processes.into_iter().map(|process| (process.pid, process.name)).collect(),
        id: kept.id,
        runtime: kept.runtime,
        directory: kept.directory,
        started: kept.started,
        workspace: kept.workspace,
        user: kept.user,
    };
    all_running_jobs(&KEEP).into_iter().map(shown).collect()
}

/// Ends a command of whichever runtime of this user, and all that it started; answers how many processes
/// that were.
pub fn end_command(id: &str) -> Result<u64, Error> {
    let Some(kept) = all_running_jobs(&KEEP).into_iter().find(|kept| kept.id == id) else {
        let message = format!("no command {} runs", visible_name(id.as_bytes()));
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    match kept.end(Ending::Polite) {
        (ended, true) => Ok(ended),
        (_, false) => {
            Err(Error::new(ErrorKind::Timeout, format!("{id} has processes that do not end"))
                .hint("They may wait for a disk or belong to another user."))
        }
    }
}
