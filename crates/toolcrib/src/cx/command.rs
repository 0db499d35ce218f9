//! Commands: starting one, and those that run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_exec::{Command, Job, JobError, Network};
use toolcrib_fs::{About, FileKind, ResolvedPath};
use toolcrib_policy::{Access, Effect};
use toolcrib_text::{Secrets, truncate_line, visible, visible_name};

use super::Cx;
use crate::command_changes::Trail;
use crate::error::{Error, ErrorKind};
use crate::names::{CWD, KILL_SHELL, LIST_SHELLS, LS};
use crate::phrases::one_line;
use crate::sandbox::{
    CommandGuard, Confined, SandboxSettings, is_enough, not_enough, sandbox, seen_tmp,
};
use crate::shell::{MAX_AGE, SessionShell, ShellHost, Variables, end_waiting_for_a_network};

/// Characters of a command that the history keeps.
const COMMAND_CHARS: usize = 200;

/// What decides on the changes of a command in the sandbox, and what captures them.
type Guarded = (Arc<CommandGuard>, Arc<Trail>);

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
    pub(crate) guarded: Option<Guarded>,
    /// What is not shown of its output.
    pub(crate) secrets: Secrets,
    /// What it was started with, and the variables that its call gave it alone.
    pub(crate) environment: Variables,
    pub(crate) with_login: bool,
    pub(crate) given: Vec<(String, String)>,
}

impl StartedCommand {
    /// The command as metadata has it: without secrets, and so many characters of it at most.
    pub(crate) fn command_shown(&self, chars: usize) -> String {
        let script = visible(self.job.script());
        truncate_line(&self.secrets.mask(&script), chars)
    }
}

/// What is said of a command before it is started.
struct StartedAs {
    directory: String,
    notes: Vec<String>,
    with_login: bool,
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
        let (base, with_login) = host.environment();
        if !with_login {
            notes.push("login environment not loaded yet; later commands have it".to_owned());
        }
        let mut environment = shell.carried().environment_with(&base, with_login);
        environment.retain(|(name, _)| name != "PWD");
        // By its components, without a slash at the end.
        let pwd: PathBuf = place.path().components().collect();
        environment.push(("PWD".into(), pwd.into_os_string()));
        let command = Command {
            script: script.as_bytes().to_vec(),
            shell: bash.to_owned(),
            directory: place.path(),
            environment,
            stdin: stdin.as_bytes().to_vec(),
        };
        shell.jobs().clean_up(MAX_AGE);
        let directory = self.show_place(&place);
        self.launch(host, shell, command, StartedAs { directory, notes, with_login })
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
        StartedAs { directory, notes, with_login }: StartedAs,
    ) -> Result<StartedCommand, Error> {
        let secrets = self.secrets();
        let (job, confined, guarded) = match host.sandbox() {
            None => {
                let job = shell.jobs().start(&command).map_err(|error| trouble(&error))?;
                (job, Confined::Not, None)
            }
            Some(settings) => {
                let enforced = host.enforced();
                if !is_enough(enforced) {
                    return Err(not_enough(enforced));
                }
                let shown = shown_command(&command.script, &secrets);
                let (job, guarded) =
                    self.launch_confined(host, shell, settings, &mut command, shown)?;
                (job, Confined::within(enforced, settings.network), Some(guarded))
            }
        };
        Ok(StartedCommand {
            job,
            directory,
            notes,
            confined,
            guarded,
            secrets,
            environment: command.environment,
            with_login,
            given: Vec::new(),
        })
    }

    /// Starts a command in the sandbox. `shown` is the command as the history has it.
    fn launch_confined(
        &self,
        host: &ShellHost,
        shell: &SessionShell,
        settings: &SandboxSettings,
        command: &mut Command,
        shown: String,
    ) -> Result<(Arc<Job>, Guarded), Error> {
        let jobs = shell.jobs();
        let tmp = jobs.tmp(host.tmp()).map_err(|error| trouble(&error))?;
        let seen = seen_tmp(host.enforced().level, &tmp);
        command.environment.push(("TMPDIR".into(), seen.into()));
        if settings.network == Network::None {
            end_waiting_for_a_network(&mut command.environment);
        }
        if let Some(moved) = self.runtime.workspace().roots().find(|root| !root.is_in_place()) {
            return Err(self.root_is_gone(moved.path()));
        }
        let sandbox = sandbox(self.runtime, settings, &tmp);
        let about = About { command: Some(shown), ..self.about.clone() };
        let trail = Arc::new(Trail::begin(self.runtime, about));
        let rules = self.runtime.path_rules().clone();
        let guard = Arc::new(CommandGuard::new(rules, trail.clone(), &tmp, &command.directory));
        let job = jobs.start_within(&sandbox, command, guard.clone());
        let job = job.map_err(|error| trouble(&error))?;
        trail.name_shell(job.id());
        shell.keep_trail(job.id(), trail.clone());
        Ok((job, (guard, trail)))
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
        let resolved = self.runtime.find(self.session, self.session.directory(), ended_in);
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

    /// The network that commands have in their sandbox; nothing, where they run without one.
    pub(crate) fn network(&self) -> Option<Network> {
        Some(self.runtime.shell_host()?.sandbox()?.network)
    }

    /// A job of this session. No id leads to a job of another.
    pub(crate) fn job(&self, id: &str) -> Result<Arc<Job>, Error> {
        let jobs = self.shell()?.jobs();
        let job = shell_number(id).and_then(|number| jobs.get(&format!("sh_{number}")));
        job.ok_or_else(|| {
            let ids: Vec<String> = jobs.list().iter().map(|job| job.id().to_owned()).collect();
            let hint = match ids.as_slice() {
                [] => "No command of this session is remembered.".to_owned(),
                ids => format!("There are: {}. {LIST_SHELLS} tells what they run.", ids.join(", ")),
            };
            let message = format!("there is no shell {}", visible_name(id.as_bytes()));
            Error::new(ErrorKind::NotFound, message).hint(hint)
        })
    }

    fn shell_host(&self) -> Result<&'a ShellHost, Error> {
        self.runtime.shell_host().ok_or_else(no_helper)
    }

    fn directory_of(&self, given: &str) -> Result<ResolvedPath, Error> {
        let place = self.place(Effect::Read, Path::new(given))?;
        let shown = self.show_place(&place);
        match place.kind() {
            Some(FileKind::Directory) => Ok(place),
            Some(_) => Err(Error::invalid(format!("`{CWD}` is {shown}, which is no directory"))),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("`{CWD}` is {shown}, which does not exist"),
            )
            .hint(format!("Nothing was run. {LS} shows what is there."))),
        }
    }

    /// Where the last command ended; if that is gone, what is left of the way to it.
    fn carried_directory(&self, shell: &SessionShell, notes: &mut Vec<String>) -> ResolvedPath {
        let top = self.session.directory();
        let Some(carried) = shell.carried().directory else { return top.clone() };
        let is_there = |path: &PathBuf| {
            let place = self.runtime.find(self.session, top, path).ok()?;
            let is_inside = place.kind() == Some(FileKind::Directory) && !place.is_outside();
            is_inside.then_some(place)
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

/// The first line of a command, for the history.
fn shown_command(script: &[u8], secrets: &Secrets) -> String {
    // Masked before it is cut: half a token is not recognized.
    visible_name(one_line(&secrets.mask(&visible(script)), COMMAND_CHARS).as_bytes())
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

/// Trouble of ours, as an error that nobody takes for the command's.
pub(crate) fn trouble(error: &JobError) -> Error {
    let kind = match error {
        JobError::TooMany(_) => ErrorKind::Limit,
        _ => ErrorKind::Io,
    };
    let hint = match error {
        JobError::TooMany(_) => {
            format!("End some of them with {KILL_SHELL}; {LIST_SHELLS} has them.")
        }
        JobError::KeeperLost => {
            "What it had done is done. Look before running it again.".to_owned()
        }
        _ => "This is trouble of the machine, not of the command: it was not run.".to_owned(),
    };
    Error::new(kind, error.to_string()).hint(hint)
}

fn no_helper() -> Error {
    Error::new(ErrorKind::Unsupported, "this host has no helper to run commands with")
        .hint("A program that embeds toolcrib calls run_helper and RuntimeBuilder::helper.")
}
