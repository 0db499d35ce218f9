//! Finds the level of confinement that a system supports, by running a command at each level.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Jobs;
use crate::command::{Command, Stdin};
use crate::find_bash::find_bash;
use crate::guard::AllowAll;
use crate::sandbox::level::{Level, SandboxSupport};
use crate::sandbox::{Network, Sandbox};
use crate::shim_messages::Ending;
use crate::start_options::StartOptions;
use crate::{Exit, Status};

/// The largest number of commands that a probe starts.
pub(crate) const MAX_COMMANDS: usize = 4;

/// How long a command that does nothing may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of its output that an error repeats.
const MAX_OUTPUT: usize = 500;

/// Finds the highest level at which a command runs. `landlock` is the newest version to use.
pub(crate) fn probe_support(jobs: &Jobs, landlock: i64) -> SandboxSupport {
    let mut reasons = Vec::new();
    for level in Level::ALL.into_iter().filter(|level| *level != Level::Nothing) {
        match attempt(jobs, level) {
            Ok(()) => return SandboxSupport::new(level, landlock, reasons),
            Err(reason) => reasons.push(format!("Level {}: {reason}.", level.number())),
        }
    }
    SandboxSupport::new(Level::Nothing, landlock, reasons)
}

/// Runs `true` at a level, in a sandbox without writable paths.
fn attempt(jobs: &Jobs, level: Level) -> Result<(), String> {
    let command = Command {
        script: b"true".to_vec(),
        shell: find_bash().ok_or("bash was not found")?,
        directory: PathBuf::from("/"),
        environment: Vec::new(),
        stdin: Stdin::EMPTY,
        separate_streams: false,
    };
    let sandbox = Sandbox::read_only(Network::None);
    let options = StartOptions::sandboxed(&sandbox, Arc::new(AllowAll)).at_level(level);
    let job = jobs.start(&command, options).map_err(|error| error.to_string())?;
    let ended = job.wait(PROBE_TIMEOUT, |now| !now.status.is_running()).ended;
    job.end(Ending::Immediate, Status::Killed);
    match ended.map(|ended| ended.exit) {
        Some(Exit::Code(0)) => Ok(()),
        Some(_) => {
            let (_, output) = job.read(0, MAX_OUTPUT);
            let output = String::from_utf8_lossy(&output);
            Err(format!("a test command failed: {}", output.trim()))
        }
        None => Err("a test command did not end".to_owned()),
    }
}
