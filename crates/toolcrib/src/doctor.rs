//! What this system lets us enforce on commands, found by trying to get out.

use std::ffi::OsString;
use std::path::Path;

use toolcrib_exec::{Command, EscapeAttempt, Level, reports_denials, try_to_escape};

use crate::cx::trouble;
use crate::error::{Error, ErrorKind};
use crate::runtime::Runtime;
use crate::sandbox::{is_enough, sandbox, seen_tmp};
use crate::shell::ShellHost;

/// How commands are confined here.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// From 0 to 4.
    pub level: u8,
    /// What that is.
    pub means: String,
    /// Whether commands are run in it, or refused.
    pub enough: bool,
    /// What is not enforced.
    pub missing: Vec<String>,
    /// Why each higher level could not be had.
    pub reasons: Vec<String>,
    /// What was tried, and whether it was refused.
    pub attempts: Vec<EscapeAttempt>,
    /// Names of variables that commands do not get: secrets, and what makes programs run code.
    pub left_out: Vec<String>,
}

impl Runtime {
    /// Finds out how commands are confined here: runs some that try to get out, in the sandbox that those
    /// of an agent get. With the profile `open` they get none; then it is the one that they would get.
    pub fn check_up(&self) -> Result<Checkup, Error> {
        let unsupported = |message| Error::new(ErrorKind::Unsupported, message);
        let host = self.shell_host().ok_or_else(|| unsupported("this host runs no commands"))?;
        let shell = host.bash().ok_or_else(|| unsupported("this system has no bash"))?;
        let enforced = host.enforced();
        let (mut attempts, mut missing) = (Vec::new(), enforced.missing.clone());
        if enforced.level.number() > 0 {
            let session = host.session();
            let settings = host.sandbox().cloned().unwrap_or_default();
            let tmp = session.jobs().tmp(host.tmp()).map_err(|error| trouble(&error))?;
            let command = Command {
                script: Vec::new(),
                shell: shell.to_owned(),
                directory: self.workspace().top().path(),
                environment: environment(host, enforced.level, &tmp),
                stdin: Vec::new(),
                separate_streams: false,
            };
            let sandbox = sandbox(self, &settings, &tmp);
            let tried = try_to_escape(session.jobs(), &sandbox, &command);
            attempts = tried.map_err(|error| trouble(&error))?;
            let told = reports_denials(session.jobs(), &sandbox, &command);
            if !told.map_err(|error| trouble(&error))? {
                missing.push("What is refused to a command is not told in replies.".to_owned());
            }
        }
        Ok(Checkup {
            level: enforced.level.number(),
            means: enforced.level.to_string(),
            enough: is_enough(enforced),
            missing,
            reasons: enforced.reasons.clone(),
            attempts,
            left_out: host.environment().0.removed.clone(),
        })
    }
}

/// What a command of an agent gets.
fn environment(host: &ShellHost, level: Level, tmp: &Path) -> Vec<(OsString, OsString)> {
    let mut environment = host.environment().0.variables.clone();
    environment.push(("TMPDIR".into(), seen_tmp(level, tmp).into()));
    environment
}
