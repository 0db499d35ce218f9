//! Checks the sandbox by trying to escape from it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use toolcrib_exec::{
    Amount, Command, EscapeAttempt, Level, Limits as CommandLimits, Network, OuterWall, Stdin,
    free_bytes, machine_memory, reports_denials, size_text, try_to_escape,
};

use crate::command_sandbox::command_sandbox;
use crate::command_state::ShellHost;
use crate::cx::job_error;
use crate::error::{Error, ErrorKind};
use crate::runtime::Runtime;
use crate::sandbox_settings::{NOT_ENFORCED_OUTSIDE, confined_outside, is_sufficient, visible_tmp};

/// State of the sandbox on this machine.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// Level, from 0 (none) to 4 (all).
    pub level: u8,
    /// Description of the level.
    pub means: String,
    /// Whether the level suffices. If not, commands are denied.
    pub enough: bool,
    /// Restrictions that are not enforced.
    pub missing: Vec<String>,
    /// The sandbox around this system, if it alone confines commands.
    pub outer: Option<&'static str>,
    /// Reason for each higher level that is not available.
    pub reasons: Vec<String>,
    /// The limits of each command: the name of the setting, and its value in this environment.
    pub limits: Vec<(&'static str, String)>,
    /// Escape attempts and their results.
    pub attempts: Vec<EscapeAttempt>,
    /// Names of variables that commands do not get: secrets, and variables that make programs execute code.
    pub left_out: Vec<String>,
}

/// Describes the sandbox of commands in one line. The first time, it finds out what the system supports.
pub type SandboxSummary = Arc<dyn Fn() -> String + Send + Sync>;

impl Runtime {
    /// Returns a function that describes the sandbox of commands in one line.
    pub fn sandbox_summary(&self) -> SandboxSummary {
        let host = self.services().commands.clone();
        Arc::new(move || host.as_deref().map_or_else(|| "no commands".to_owned(), summary))
    }

    /// Returns the level of the sandbox of commands, from 0 (none) to 4 (all). The first time, it finds out what the
    /// system supports. `None` if the host has no helper.
    pub fn sandbox_level(&self) -> Option<u8> {
        let host = self.services().commands.as_deref();
        host.map(|host| if host.confines() { host.enforced().level.number() } else { 0 })
    }

    /// Checks the sandbox: runs commands that try to escape from the same sandbox that an agent's commands get.
    /// With the profile `open`, which has no sandbox, it checks the sandbox of the other profiles.
    ///
    /// # Errors
    ///
    /// Fails with kind [`ErrorKind::Unsupported`] if the runtime has no helper or the system has no bash, and
    /// if a command cannot be started.
    pub fn check_up(&self) -> Result<Checkup, Error> {
        let unsupported = |message| Error::new(ErrorKind::Unsupported, message);
        let host = self
            .services()
            .commands
            .as_deref()
            .ok_or_else(|| unsupported("this host runs no commands"))?;
        let shell = host.bash().ok_or_else(|| unsupported("this system has no bash"))?;
        let enforced = host.enforced();
        let outer = host.outer_wall();
        let (mut attempts, mut missing) = (Vec::new(), enforced.missing.clone());
        if outer.is_some() {
            missing = NOT_ENFORCED_OUTSIDE.iter().copied().map(str::to_owned).collect();
        }
        let limits = host.sandbox().map(|settings| settings.limits);
        if enforced.level.number() > 0 && outer.is_none() {
            let session = host.session();
            let settings = host.sandbox().cloned().unwrap_or_default();
            let tmp = session.jobs().tmp(host.tmp()).map_err(|error| job_error(&error))?;
            let command = Command {
                script: Vec::new(),
                shell: shell.to_owned(),
                directory: self.services().paths.workspace.top().path(),
                environment: environment(host, enforced.level, &tmp),
                stdin: Stdin::EMPTY,
                separate_streams: false,
            };
            let sandbox = command_sandbox(self.services(), &settings, &tmp);
            let tried = try_to_escape(session.jobs(), &sandbox, &command);
            attempts = tried.map_err(|error| job_error(&error))?;
            let reports = reports_denials(session.jobs(), &sandbox, &command);
            if !reports.map_err(|error| job_error(&error))? {
                missing.push(
                    "Replies do not report the operations that the sandbox denied.".to_owned(),
                );
            }
        }
        Ok(Checkup {
            level: enforced.level.number(),
            means: enforced.level.to_string(),
            enough: match host.sandbox().filter(|_| outer.is_some()) {
                Some(settings) => confined_outside(enforced, settings).is_ok(),
                None => is_sufficient(enforced),
            },
            outer: outer.map(OuterWall::shown),
            missing,
            reasons: enforced.reasons.clone(),
            limits: limits.map(|limits| limit_values(&limits, host.tmp())).unwrap_or_default(),
            attempts,
            left_out: host.environment().0.removed.clone(),
        })
    }
}

/// The limits of a command, as `doctor` shows them.
fn limit_values(limits: &CommandLimits, tmp: &Path) -> Vec<(&'static str, String)> {
    let shown = |limit: Amount, total: u64| match limit {
        Amount::Percent(_) => {
            let bytes = size_text(limit.of(|| total).unwrap_or(u64::MAX));
            format!("{bytes} ({limit} of {})", size_text(total))
        }
        limit => limit.to_string(),
    };
    let (memory, free) = (machine_memory(), free_bytes(tmp));
    vec![
        ("memory", format!("{} for all processes, measured", shown(limits.memory, memory))),
        ("process_memory", shown(limits.process_memory, memory)),
        ("file_size", limits.file_size.to_string()),
        ("tmp_size", format!("{} for the session, measured", shown(limits.tmp_size, free))),
        ("processes", limits.processes.to_string()),
    ]
}

/// Environment of an agent's command.
fn environment(host: &ShellHost, level: Level, tmp: &Path) -> Vec<(OsString, OsString)> {
    let mut environment = host.environment().0.variables.clone();
    environment.push(("TMPDIR".into(), visible_tmp(level, tmp).into()));
    environment
}
/// The sandbox of commands in one line.
fn summary(host: &ShellHost) -> String {
    let Some(settings) = host.sandbox() else {
        return "no sandbox: the profile is open".to_owned();
    };
    let enforced = host.enforced();
    if let Some(wall) = host.outer_wall() {
        return match confined_outside(enforced, settings) {
            Ok(confined) => confined.note().unwrap_or_default(),
            Err(_) => format!("no command runs: {} needs network = \"all\"", wall.shown()),
        };
    }
    if !is_sufficient(enforced) {
        return "the sandbox is not available, so no command runs".to_owned();
    }
    let network = match settings.network {
        Network::None => "no network",
        Network::List => "listed hosts only",
        Network::All => "all of the network",
    };
    let (number, level) = (enforced.level.number(), &enforced.level);
    let mut line = format!("sandbox level {number} of 4 ({level}), {network}");
    if !enforced.missing.is_empty() {
        line += &format!("; not enforced: {}", enforced.missing.join(", "));
    }
    line
}
