//! What this system lets us enforce on commands, found by trying to get out.

use toolcrib_exec::{Attempt, Command, try_to_escape};

use crate::cx::trouble;
use crate::error::{Error, ErrorKind};
use crate::runtime::Runtime;
use crate::sandbox::{is_enough, kept_from, sandbox};

/// How commands are confined here.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// 0, 1, 2 or 4.
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
    pub attempts: Vec<Attempt>,
}

impl Runtime {
    /// Finds out how commands are confined here: runs some that try to get out, in the sandbox that those
    /// of an agent get. With the profile `open` they get none; then it is the one that they would get.
    pub fn check_up(&self) -> Result<Checkup, Error> {
        let unsupported = |message| Error::new(ErrorKind::Unsupported, message);
        let host = self.shell_host().ok_or_else(|| unsupported("this host runs no commands"))?;
        let shell = host.bash().ok_or_else(|| unsupported("this system has no bash"))?;
        let enforced = host.enforced();
        let mut attempts = Vec::new();
        if enforced.level.number() > 0 {
            let session = host.session();
            let settings = host.sandbox().cloned().unwrap_or_default();
            let tmp = session.jobs().tmp(host.tmp()).map_err(|error| trouble(&error))?;
            let command = Command {
                script: Vec::new(),
                shell: shell.to_owned(),
                directory: self.workspace().top().path(),
                environment: host.environment().variables.clone(),
                stdin: Vec::new(),
            };
            let kept = kept_from(self, host.survey());
            let sandbox = sandbox(self, &settings, &kept, &tmp);
            let tried = try_to_escape(session.jobs(), &sandbox, &command);
            attempts = tried.map_err(|error| trouble(&error))?;
        }
        Ok(Checkup {
            level: enforced.level.number(),
            means: enforced.level.to_string(),
            enough: is_enough(enforced),
            missing: enforced.missing.clone(),
            reasons: enforced.reasons.clone(),
            attempts,
        })
    }
}
