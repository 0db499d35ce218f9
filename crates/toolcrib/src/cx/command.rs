//! Commands: starting one, and those that run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_exec::{Command, Job, JobError};
use toolcrib_fs::{FileKind, Place};
use toolcrib_policy::{Access, Effect};
use toolcrib_text::{Secrets, visible_name};

use super::Cx;
use crate::error::{Error, ErrorKind};
use crate::sandbox::{CommandGuard, Confined, is_enough, not_enough, sandbox, seen_tmp};
use crate::shell::{MAX_AGE, SessionShell, ShellHost};
use crate::trail::Trail;

/// A command that runs, or has.
pub(crate) struct StartedCommand {
    pub(crate) job: Arc<Job>,
    /// Where it began, as replies show it.
    pub(crate) directory: String,
    /// What the caller should know of how it was started.
    pub(crate) notes: Vec<String>,
    /// What held it.
    pub(crate) confined: Confined,
    /// What decides about its changes, and records them, if it is confined.
    pub(crate) guarded: Option<(Arc<CommandGuard>, Arc<Trail>)>,
    /// What is not shown of its output.
    pub(crate) secrets: Secrets,
}

/// What is said of a command before it is started.
struct StartedAs {
    directory: String,
    notes: Vec<String>,
}

impl<'a> Cx<'a> {
    /// Starts a script, if the call said that it would run just this one: in `directory`, or where the
    /// last one ended.
    pub(crate) fn start(
        &self,
        script: &str,
        directory: Option<&str>,
        stdin: &str,
    ) -> Result<StartedCommand, Error> {
        if !self.grant.accesses().contains(&Access::Command(script.to_owned())) {
            return Err(Error::new(
                ErrorKind::Denied,
                "the tool had not said that it would run this",
            )
            .hint("This is a fault of the tool, not of the call. Nothing was run."));
        }
        let (host, shell) = (self.shell_host()?, self.shell()?);
        let bash = host.bash().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "this system has no bash, so no command can be run")
                .hint("The operator can install it as /bin/bash; the file tools work without it.")
        })?;
        let mut notes = Vec::new();
        let place = match directory {
            Some(given) => self.directory_of(given)?,
            None => self.carried_directory(shell, &mut notes),
        };
        let base = || host.environment().variables.clone();
        let mut environment = shell.carried().environment.unwrap_or_else(base);
        environment.push(("PWD".into(), place.path().into_os_string()));
        let command = Command {
            script: script.as_bytes().to_vec(),
            shell: bash.to_owned(),
            directory: place.path(),
            environment,
            stdin: stdin.as_bytes().to_vec(),
        };
        shell.jobs().clean_up(MAX_AGE);
        let directory = self.show_place(&place);
        self.launch(host, shell, command, StartedAs { directory, notes })
    }

    /// What no output of a command shows.
    pub(crate) fn secrets(&self) -> Secrets {
        self.runtime.secrets(self.session)
    }

    /// A real path as replies show it.
    pub(crate) fn show_real(&self, path: &Path) -> String {
        self.runtime.show_path(self.session.directory(), path)
    }

    /// Starts a command in the sandbox, if the profile has one.
    fn launch(
        &self,
        host: &ShellHost,
        shell: &SessionShell,
        mut command: Command,
        StartedAs { directory, notes }: StartedAs,
    ) -> Result<StartedCommand, Error> {
        let jobs = shell.jobs();
        let Some(settings) = host.sandbox() else {
            let job = jobs.start(&command).map_err(|error| trouble(&error))?;
            let (confined, guarded, secrets) = (Confined::Not, None, self.secrets());
            return Ok(StartedCommand { job, directory, notes, confined, guarded, secrets });
        };
        let enforced = host.enforced();
        if !is_enough(enforced) {
            return Err(not_enough(enforced));
        }
        let tmp = jobs.tmp(host.tmp()).map_err(|error| trouble(&error))?;
        command.environment.push(("TMPDIR".into(), seen_tmp(enforced.level, &tmp).into()));
        if let Some(moved) = self.runtime.workspace().roots().find(|root| !root.is_in_place()) {
            return Err(self.root_is_gone(moved.path()));
        }
        let sandbox = sandbox(self.runtime, settings, &tmp);
        let trail = Arc::new(Trail::begin(self.runtime, self.about.clone()));
        let rules = self.runtime.path_rules().clone();
        let guard = Arc::new(CommandGuard::new(rules, trail.clone(), &tmp, &command.directory));
        let job = jobs.start_within(&sandbox, &command, guard.clone());
        let job = job.map_err(|error| trouble(&error))?;
        shell.keep_trail(job.id(), trail.clone());
        let confined = Confined::within(enforced, settings.network);
        let (guarded, secrets) = (Some((guard, trail)), self.secrets());
        Ok(StartedCommand { job, directory, notes, confined, guarded, secrets })
    }

    /// No command runs in a directory that took the name of a root.
    fn root_is_gone(&self, root: &Path) -> Error {
        let shown = visible_name(root.as_os_str().as_encoded_bytes());
        let message = format!("{shown} is not the directory that it was when this session began");
        Error::new(ErrorKind::Stale, message).hint(
            "It was renamed or replaced. Nothing was run. File tools still use the old directory; the operator can move it back, or start the server again.",
        )
    }

    /// Where the next command begins, as replies show it, if nobody says otherwise.
    pub(crate) fn shell_directory(&self) -> Result<String, Error> {
        let place = self.carried_directory(self.shell()?, &mut Vec::new());
        Ok(self.show_place(&place))
    }

    /// The next command begins where this one ended, if that is inside; answers the directory as replies
    /// show it, or what is wrong with it.
    pub(crate) fn carry_directory(&self, ended_in: &Path) -> Result<String, String> {
        let outside = || visible_name(ended_in.as_os_str().as_encoded_bytes());
        let resolved = self.runtime.workspace().resolve(self.session.directory(), ended_in);
        let place = resolved.map_err(|_| outside())?;
        if let Ok(shell) = self.shell() {
            shell.carry_directory(place.path());
        }
        Ok(self.show_place(&place))
    }

    /// The commands of this session.
    pub(crate) fn shell(&self) -> Result<&'a SessionShell, Error> {
        self.session.shell().ok_or_else(no_helper)
    }

    /// A job of this session.
    pub(crate) fn job(&self, id: &str) -> Result<Arc<Job>, Error> {
        let jobs = self.shell()?.jobs();
        jobs.get(id).ok_or_else(|| {
            let ids: Vec<String> = jobs.list().iter().map(|job| job.id().to_owned()).collect();
            let hint = match ids.as_slice() {
                [] => "No command of this session is remembered.".to_owned(),
                ids => format!("There are: {}. ListShells tells what they run.", ids.join(", ")),
            };
            let message = format!("there is no shell {}", visible_name(id.as_bytes()));
            Error::new(ErrorKind::NotFound, message).hint(hint)
        })
    }

    fn shell_host(&self) -> Result<&'a ShellHost, Error> {
        self.runtime.shell_host().ok_or_else(no_helper)
    }

    fn directory_of(&self, given: &str) -> Result<Place, Error> {
        let place = self.place(Effect::Read, Path::new(given))?;
        let shown = self.show_place(&place);
        match place.kind() {
            Some(FileKind::Directory) => Ok(place),
            Some(_) => Err(Error::invalid(format!("`cwd` is {shown}, which is no directory"))),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("`cwd` is {shown}, which does not exist"),
            )
            .hint("Nothing was run. LS shows what is there.")),
        }
    }

    /// Where the last command ended; if that is gone, what is left of the way to it.
    fn carried_directory(&self, shell: &SessionShell, notes: &mut Vec<String>) -> Place {
        let top = self.session.directory();
        let Some(carried) = shell.carried().directory else { return top.clone() };
        let is_there = |path: &PathBuf| {
            let place = self.runtime.workspace().resolve(top, path).ok()?;
            (place.kind() == Some(FileKind::Directory)).then_some(place)
        };
        if let Some(place) = is_there(&carried) {
            return place;
        }
        let nearest = carried.ancestors().skip(1).find_map(|path| is_there(&path.to_owned()));
        let place = nearest.unwrap_or_else(|| top.clone());
        shell.carry_directory(place.path());
        let gone = self.runtime.show_path(top, &carried);
        notes.push(format!("{gone} is gone: this ran in {}", self.show_place(&place)));
        place
    }
}

/// Trouble of ours, as an error that nobody takes for the command's.
pub(crate) fn trouble(error: &JobError) -> Error {
    let kind = match error {
        JobError::TooMany(_) => ErrorKind::Limit,
        _ => ErrorKind::Io,
    };
    let hint = match error {
        JobError::TooMany(_) => "End some of them with KillShell; ListShells has them.",
        JobError::KeeperLost => "What it had done is done. Look before running it again.",
        _ => "This is trouble of the machine, not of the command: it was not run.",
    };
    Error::new(kind, error.to_string()).hint(hint)
}

fn no_helper() -> Error {
    Error::new(ErrorKind::Unsupported, "this host has no helper to run commands with")
        .hint("A program that embeds toolcrib calls run_helper and RuntimeBuilder::helper.")
}
