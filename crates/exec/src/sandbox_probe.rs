//! What a system lets us enforce, found by running a command at each level.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::command::Command;
use crate::find_bash::find_bash;
use crate::guard::AllowAll;
use crate::jobs::Jobs;
use crate::sandbox::level::{Enforced, Level};
use crate::sandbox::{Network, Sandbox};
use crate::wire::Ending;
use crate::{Exit, Status};

/// How many commands a session is asked for, at most.
pub(crate) const COMMANDS: usize = 4;

/// How long a command that does nothing may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of its words is repeated, if it has any.
const SAID: usize = 500;

/// The highest level at which a command runs, with Landlock up to a version.
pub(crate) fn highest(jobs: &Jobs, landlock: i64) -> Enforced {
    let mut reasons = Vec::new();
    for level in Level::ALL.into_iter().filter(|level| *level != Level::Nothing) {
        match attempt(jobs, level) {
            Ok(()) => return Enforced::at(level, landlock, reasons),
            Err(reason) => reasons.push(format!("Level {}: {reason}.", level.number())),
        }
    }
    Enforced::at(Level::Nothing, landlock, reasons)
}

/// Runs `true` at a level, in a sandbox that has everything read-only.
fn attempt(jobs: &Jobs, level: Level) -> Result<(), String> {
    let command = Command {
        script: b"true".to_vec(),
        shell: find_bash().ok_or("there is no bash")?,
        directory: PathBuf::from("/"),
        environment: Vec::new(),
        stdin: Vec::new(),
        separate_streams: false,
    };
    let sandbox = Sandbox::read_only(Network::None);
    let job = jobs
        .start_at(level, &sandbox, &command, Arc::new(AllowAll))
        .map_err(|error| error.to_string())?;
    let ended = job.wait(PATIENCE, |now| !now.status.is_running()).ended;
    job.end(Ending::Immediate, Status::Killed);
    match ended.map(|ended| ended.exit) {
        Some(Exit::Code(0)) => Ok(()),
        Some(_) => {
            let (_, said) = job.read(0, SAID);
            let said = String::from_utf8_lossy(&said);
            Err(format!("a command that does nothing failed: {}", said.trim()))
        }
        None => Err("a command that does nothing did not end".to_owned()),
    }
}
