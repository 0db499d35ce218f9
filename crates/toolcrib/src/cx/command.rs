//! The methods of [`Cx`] that start and find commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_exec::{Command, Job, JobError, Network};
use toolcrib_fs::{About, FileKind, ResolvedPath};
use toolcrib_policy::{Access, Effect};
use toolcrib_text::{Secrets, truncate_line, visible, visible_name};

use super::Cx;
use crate::command_changes::CommandChanges;
use crate::command_guard::CommandGuard;
use crate::command_sandbox::command_sandbox;
use crate::command_state::{MAX_AGE, SessionShell, ShellHost, Variables, add_offline_variables};
use crate::dialect_names::{CWD, KILL_SHELL, LIST_SHELLS, LS};
use crate::error::{Error, ErrorKind};
use crate::host_asker::{HostAsker, session_rules};
use crate::network::notes::HostNote;
use crate::phrases::one_line;
use crate::sandbox_settings::{
    Confined, SandboxSettings, effective_network, insufficient_level_error, is_sufficient,
    visible_tmp,
};

/// Characters of a command in the history.
const COMMAND_CHARS: usize = 200;

/// The guard of a sandboxed command, and the capture of its changes.
type GuardAndChanges = (Arc<CommandGuard>, Arc<CommandChanges>);

/// A started command.
pub(crate) struct StartedCommand {
    pub(crate) job: Arc<Job>,
    /// Working directory, as replies show it.
    pub(crate) directory: String,
    /// Notes on the start, for the caller.
    pub(crate) notes: Vec<String>,
    /// The sandbox.
    pub(crate) confined: Confined,
    /// Guard and capture, if the command is sandboxed.
    pub(crate) guarded: Option<GuardAndChanges>,
    /// Values to redact from its output.
    pub(crate) secrets: Secrets,
    /// The environment at the start, and the variables that only this call set.
    pub(crate) environment: Variables,
    pub(crate) with_login: bool,
    pub(crate) given: Vec<(String, String)>,
}

impl StartedCommand {
    /// The command for metadata: secrets masked, truncated to `chars` characters.
    pub(crate) fn command_shown(&self, chars: usize) -> String {
        let script = visible(self.job.script());
        truncate_line(&self.secrets.mask(&script), chars)
    }
}

/// Details of a command that is not started yet.
struct CommandDetails {
    directory: String,
    notes: Vec<String>,
    with_login: bool,
    confined: Confined,
}

/// A command that could be started.
struct Startable<'a> {
    host: &'a ShellHost,
    shell: &'a SessionShell,
    bash: &'a Path,
    place: ResolvedPath,
    notes: Vec<String>,
    confined: Confined,
}

/// A command that a tool starts.
pub(crate) struct ToStart<'a> {
    pub(crate) script: &'a str,
    /// `None` for the directory in which the last command ended.
    pub(crate) directory: Option<&'a str>,
    pub(crate) stdin: &'a str,
    pub(crate) separate_streams: bool,
}

impl<'a> Cx<'a> {
    /// Starts a script that the call has declared.
    pub(crate) fn start(&self, to_start: &ToStart<'_>) -> Result<StartedCommand, Error> {
        let ToStart { script, directory, stdin, separate_streams } = *to_start;
        let Startable { host, shell, bash, place, mut notes, confined } =
            self.startable(script, directory)?;
        let (base, with_login) = host.environment();
        if !with_login {
            notes.push("login environment not loaded yet; later commands have it".to_owned());
        }
        let mut environment = shell.carried().environment_with(&base, with_login);
        environment.retain(|(name, _)| name != "PWD");
        // Without a trailing slash.
        let pwd: PathBuf = place.path().components().collect();
        environment.push(("PWD".into(), pwd.into_os_string()));
        let command = Command {
            script: script.as_bytes().to_vec(),
            shell: bash.to_owned(),
            directory: place.path(),
            environment,
            stdin: stdin.as_bytes().to_vec(),
            separate_streams,
        };
        shell.jobs().clean_up(MAX_AGE);
        let directory = self.show_place(&place);
        self.launch(host, shell, command, CommandDetails { directory, notes, with_login, confined })
    }

    /// The directory in which a script would start, as replies show it, and its sandbox. Fails as starting it would.
    pub(crate) fn rehearse(
        &self,
        script: &str,
        directory: Option<&str>,
    ) -> Result<(String, Confined), Error> {
        let Startable { place, confined, .. } = self.startable(script, directory)?;
        Ok((self.show_place(&place), confined))
    }

    /// Checks the preconditions of a command.
    fn startable(&self, script: &str, directory: Option<&str>) -> Result<Startable<'a>, Error> {
        if !self.grant.accesses().contains(&Access::Command(script.to_owned())) {
            return Err(Error::new(ErrorKind::Denied, "the tool did not declare this command")
                .hint("This is a bug in the tool, not in the call. Nothing was run."));
        }
        let (host, shell) = (self.shell_host()?, self.shell()?);
        let bash = host.bash().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "this system has no bash, so no command can be run")
                .hint("The operator can install it as /bin/bash; the file tools work without it.")
        })?;
        let mut notes = Vec::new();
        let place = match directory {
            Some(given) => self.requested_directory(given)?,
            None => self.carried_directory(shell, &mut notes),
        };
        let confined = match host.sandbox() {
            None => Confined::Not,
            Some(_) if !is_sufficient(host.enforced()) => {
                return Err(insufficient_level_error(host.enforced()));
            }
            Some(settings) => Confined::within(host.enforced(), settings),
        };
        let moved = self.services.paths.workspace.roots().find(|root| !root.is_in_place());
        match moved.filter(|_| matches!(confined, Confined::Within { .. })) {
            Some(moved) => Err(self.replaced_root_error(moved.path())),
            None => Ok(Startable { host, shell, bash, place, notes, confined }),
        }
    }

    /// Values to redact from the output of commands.
    pub(crate) fn secrets(&self) -> Secrets {
        self.services.secrets(self.session)
    }

    /// A resolved path as replies show it.
    pub(crate) fn show_real(&self, path: &Path) -> String {
        self.services.paths.show(self.session.directory(), path)
    }

    /// Starts a command, in the sandbox if the profile has one.
    fn launch(
        &self,
        host: &ShellHost,
        shell: &SessionShell,
        mut command: Command,
        CommandDetails { directory, notes, with_login, confined }: CommandDetails,
    ) -> Result<StartedCommand, Error> {
        let secrets = self.secrets();
        let (job, guarded) = match host.sandbox() {
            None => (shell.jobs().start(&command).map_err(|error| job_error(&error))?, None),
            Some(settings) => {
                let shown = shown_command(&command.script, &secrets);
                let (job, guarded) =
                    self.launch_confined(host, shell, settings, &mut command, shown)?;
                (job, Some(guarded))
            }
        };
        let confined = if shell.claim_sandbox_explanation() {
            confined
        } else {
            confined.without_explanation()
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

    /// Starts a command in the sandbox. `shown` is the command for the history.
    fn launch_confined(
        &self,
        host: &ShellHost,
        shell: &SessionShell,
        settings: &SandboxSettings,
        command: &mut Command,
        shown: String,
    ) -> Result<(Arc<Job>, GuardAndChanges), Error> {
        let jobs = shell.jobs();
        let tmp = jobs.tmp(host.tmp()).map_err(|error| job_error(&error))?;
        let seen = visible_tmp(host.enforced().level, &tmp);
        command.environment.push(("TMPDIR".into(), seen.into()));
        if effective_network(settings, host.enforced()) == Network::None {
            add_offline_variables(&mut command.environment);
        }
        // Hosts that were approved for this command are for no other one, also if it cannot be started.
        let id = jobs.reserve_id();
        if let Some(network) = shell.network() {
            network.set_rules(session_rules(self.services, self.session));
            network.allow_once(id.as_str(), self.hosts.clone());
        }
        let sandbox = command_sandbox(self.services, settings, &tmp);
        let about = About { command: Some(shown), ..self.about.clone() };
        let changes = Arc::new(CommandChanges::begin(
            &self.services.paths.workspace,
            self.services.paths.hidden.own(),
            self.services.history.journal().cloned(),
            about,
        ));
        let rules = self.services.paths.path_rules.clone();
        let guard = Arc::new(CommandGuard::new(rules, changes.clone(), &tmp, &command.directory));
        let job = jobs.start_sandboxed_as(id, &sandbox, command, guard.clone());
        let job = job.map_err(|error| job_error(&error))?;
        changes.set_job_id(job.id());
        shell.add_changes(job.id(), changes.clone());
        Ok((job, (guard, changes)))
    }

    /// The error if another directory has taken the path of a root. No command runs there.
    fn replaced_root_error(&self, root: &Path) -> Error {
        let shown = visible_name(root.as_os_str().as_encoded_bytes());
        let message = format!("{shown} is not the directory that it was when this session started");
        Error::new(ErrorKind::Stale, message).hint(
            "It was renamed or replaced. Nothing was run. File tools still use the old directory; the operator can move it back, or start the server again.",
        )
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
        Some(HostAsker::new(network, self.services, self.session, self.options))
    }

    /// The hosts that a job tried to reach, since the last reply about it.
    pub(crate) fn take_host_notes(&self, job: &Job) -> Vec<HostNote> {
        let network = self.session.shell().and_then(SessionShell::network);
        network.map(|network| network.take_notes(job.id())).unwrap_or_default()
    }

    /// Whether a port of a command is reachable on this machine. `None` if that was not wanted.
    pub(crate) fn exposed(&self, port: u16) -> Option<Result<(), String>> {
        self.session.shell()?.network()?.exposed(port)
    }

    /// The network setting of the sandbox. `None` without a sandbox.
    pub(crate) fn network(&self) -> Option<Network> {
        Some(self.services.commands.as_ref()?.sandbox()?.network)
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

    fn shell_host(&self) -> Result<&'a ShellHost, Error> {
        self.services.commands.as_deref().ok_or_else(no_helper)
    }

    fn requested_directory(&self, given: &str) -> Result<ResolvedPath, Error> {
        let place = self.granted_path(Effect::Read, Path::new(given))?;
        let shown = self.show_place(&place);
        match place.kind() {
            Some(FileKind::Directory) => Ok(place),
            Some(_) => Err(Error::invalid(format!("`{CWD}` is {shown}, which is not a directory"))),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("`{CWD}` is {shown}, which does not exist"),
            )
            .hint(format!("Nothing was run. {LS} lists a directory."))),
        }
    }

    /// The directory in which the last command ended, or its nearest existing parent.
    fn carried_directory(&self, shell: &SessionShell, notes: &mut Vec<String>) -> ResolvedPath {
        let top = self.session.directory();
        let Some(carried) = shell.carried().directory else { return top.clone() };
        let is_there = |path: &PathBuf| {
            let place = self.services.paths.resolve(self.session, top, path).ok()?;
            let is_inside = place.kind() == Some(FileKind::Directory) && !place.is_outside();
            is_inside.then_some(place)
        };
        if let Some(place) = is_there(&carried) {
            return place;
        }
        let nearest = carried.ancestors().skip(1).find_map(|path| is_there(&path.to_owned()));
        let place = nearest.unwrap_or_else(|| top.clone());
        shell.carry_directory(place.path());
        let gone = self.services.paths.show(top, &carried);
        notes.push(format!("{gone} no longer exists: this ran in {}", self.show_place(&place)));
        place
    }
}

/// First line of a command, for the history.
fn shown_command(script: &[u8], secrets: &Secrets) -> String {
    // Masked before truncation: a truncated token is not recognized.
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

/// `EACCES` of Linux.
const EACCES: i32 = 13;

/// A failure to start or run a command, worded so that it is not taken for the command's own failure.
pub(crate) fn job_error(error: &JobError) -> Error {
    let kind = match error {
        JobError::TooMany(_) => ErrorKind::Limit,
        _ => ErrorKind::Io,
    };
    let hint = match error {
        JobError::TooMany(_) => {
            format!("End some of them with {KILL_SHELL}; {LIST_SHELLS} lists them.")
        }
        JobError::ShimLost => {
            "The command may have run in part. Check its effects before you run it again."
                .to_owned()
        }
        JobError::NotPrepared { step, errno: EACCES, .. } if step == "enter the directory" => {
            format!(
                "The command was not run: the mode of the directory denies access. Run chmod with another `{CWD}`, such as /tmp."
            )
        }
        _ => "The command was not run: the system failed, not the command.".to_owned(),
    };
    Error::new(kind, error.to_string()).hint(hint)
}

fn no_helper() -> Error {
    Error::new(ErrorKind::Unsupported, "this host has no helper process to run commands")
        .hint("The host program must call run_helper and RuntimeBuilder::helper.")
}
