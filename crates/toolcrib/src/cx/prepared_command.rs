//! A command from its request to its start: [`CommandRequest`], [`PreparedCommand`], [`RunningCommand`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_exec::{Command, Job, JobError, Jobs, Network, StartOptions, Stdin, Streams};
use toolcrib_fs::{About, FileKind, ResolvedPath, Root};
use toolcrib_policy::{Access, Effect};
use toolcrib_text::{Secrets, truncate_line, visible, visible_name};

use super::Cx;
use super::command::no_helper;
use crate::call_command::CallCommand;
use crate::command_changes::CommandChanges;
use crate::command_guard::CommandGuard;
use crate::command_sandbox::{command_sandbox, may_write};
use crate::command_state::{
    Carried, MAX_AGE, SessionShell, ShellHost, Variables, add_offline_variables,
    add_session_caches, set_proxy_variables,
};
use crate::error::{Error, ErrorKind};
use crate::host_asker::session_rules;
use crate::message_names::{CWD, KILL_SHELL, LIST_SHELLS, LS};
use crate::path_access::removed_root_error;
use crate::phrases::one_line;
use crate::sandbox_settings::{
    Confined, SandboxSettings, confined_outside, effective_network, is_sufficient, visible_tmp,
};

/// Characters of a command in the history.
const COMMAND_CHARS: usize = 200;

/// A command that a tool wants to run.
pub(crate) struct CommandRequest {
    pub(crate) script: String,
    /// `None` for the directory in which the last command ended, or for the first root if no state is carried.
    pub(crate) directory: Option<String>,
    pub(crate) stdin: Stdin,
    pub(crate) separate_streams: bool,
    /// The variables that the script sets for this command only.
    pub(crate) variables: Vec<(String, String)>,
    /// Whether it gets the directory and the exported variables of the last command.
    pub(crate) carries_state: bool,
}

/// A command that passed all checks and has not been started.
pub(crate) struct PreparedCommand<'c> {
    cx: &'c Cx<'c>,
    request: CommandRequest,
    host: &'c ShellHost,
    shell: &'c SessionShell,
    bash: &'c Path,
    place: ResolvedPath,
    notes: Vec<String>,
    confined: Confined,
}

/// The guard of a sandboxed command, and the capture of its changes.
pub(crate) struct Guarded {
    pub(crate) guard: Arc<CommandGuard>,
    pub(crate) changes: Arc<CommandChanges>,
}

/// A command that was started.
pub(crate) struct RunningCommand {
    pub(crate) job: Arc<Job>,
    /// Working directory at the start, as replies show it.
    pub(crate) directory: String,
    /// Notes on the start, for the caller.
    pub(crate) notes: Vec<String>,
    pub(crate) confined: Confined,
    /// `None` without a sandbox.
    pub(crate) guarded: Option<Guarded>,
    /// Values to redact from its output.
    pub(crate) secrets: Secrets,
    /// The environment at the start.
    pub(crate) environment: Variables,
    /// Whether the environment includes the login environment.
    pub(crate) with_login: bool,
    /// The variables that the script sets for this command only.
    pub(crate) variables: Vec<(String, String)>,
}

impl RunningCommand {
    /// The command for metadata: secrets masked, truncated to `chars` characters.
    pub(crate) fn shown_script(&self, chars: usize) -> String {
        let script = visible(self.job.script());
        truncate_line(&self.secrets.mask_command(&script), chars)
    }
}

impl Cx<'_> {
    /// Checks the preconditions of a command that the call has declared.
    pub(crate) fn prepare(&self, request: CommandRequest) -> Result<PreparedCommand<'_>, Error> {
        if !self.grant.accesses().contains(&Access::Command(request.script.clone())) {
            return Err(Error::new(ErrorKind::Denied, "the tool did not declare this command")
                .hint("This is a bug in the tool, not in the call. Nothing was run."));
        }
        let host = self.services.commands.as_deref().ok_or_else(no_helper)?;
        let shell = self.shell()?;
        let bash = host.bash().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "this system has no bash, so no command can be run")
                .hint("The operator can install it as /bin/bash; the file tools work without it.")
        })?;
        let mut notes = Vec::new();
        let place = match &request.directory {
            Some(given) => self.requested_directory(given)?,
            None if request.carries_state => self.carried_directory(shell, &mut notes),
            None => self.session.directory().clone(),
        };
        let confined = match host.sandbox() {
            None => Confined::Not,
            Some(settings) if !is_sufficient(host.enforced()) => {
                confined_outside(host.enforced(), settings)?
            }
            Some(settings) => Confined::within(host.enforced(), settings),
        };
        let moved = self.services.paths.workspace.roots().find(|root| !root.is_in_place());
        match moved.filter(|_| matches!(confined, Confined::Within { .. })) {
            Some(moved) => Err(replaced_root_error(moved)),
            None => {
                Ok(PreparedCommand { cx: self, request, host, shell, bash, place, notes, confined })
            }
        }
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

    /// The directory in which the next command starts, as replies show it.
    pub(crate) fn next_directory(&self, shell: &SessionShell) -> String {
        self.show_place(&self.carried_directory(shell, &mut Vec::new()))
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

impl PreparedCommand<'_> {
    /// The directory in which the command would start, as replies show it.
    pub(crate) fn directory(&self) -> String {
        self.cx.show_place(&self.place)
    }

    pub(crate) fn confined(&self) -> &Confined {
        &self.confined
    }

    /// Starts the command, in the sandbox if the profile has one.
    pub(crate) fn start(self) -> Result<RunningCommand, Error> {
        Ok(self.start_with(|jobs, command, options| Ok((jobs.start(command, options)?, ())))?.0)
    }

    /// Starts the command like [`PreparedCommand::start`], and returns its streams.
    pub(crate) fn spawn(self) -> Result<(RunningCommand, Streams), Error> {
        self.start_with(Jobs::spawn)
    }

    fn start_with<S>(mut self, start: impl StartJob<S>) -> Result<(RunningCommand, S), Error> {
        let (base, with_login) = self.host.environment();
        if !with_login {
            let note = "login environment not loaded yet; later commands have it";
            self.notes.push(note.to_owned());
        }
        let carried =
            if self.request.carries_state { self.shell.carried() } else { Carried::default() };
        let mut environment = carried.environment_with(&base, with_login);
        environment.retain(|(name, _)| name != "PWD");
        // Without a trailing slash.
        let pwd: PathBuf = self.place.path().components().collect();
        environment.push(("PWD".into(), pwd.into_os_string()));
        let mut command = Command {
            script: self.request.script.as_bytes().to_vec(),
            shell: self.bash.to_owned(),
            directory: self.place.path(),
            environment,
            stdin: self.request.stdin.clone(),
            separate_streams: self.request.separate_streams,
        };
        self.shell.jobs().clean_up(MAX_AGE);
        let secrets = self.cx.secrets();
        let place = self.cx.services.begin_command()?;
        let ((job, streams), guarded) = match self.host.sandbox() {
            Some(settings) if matches!(self.confined, Confined::Outside { .. }) => {
                (self.start_limited(settings, &command, start)?, None)
            }
            Some(settings) => {
                let (started, guarded) =
                    self.start_sandboxed(settings, &mut command, &secrets, start)?;
                (started, Some(guarded))
            }
            None => {
                let started = start(self.shell.jobs(), &command, StartOptions::unconfined());
                (started.map_err(|error| job_error(&error))?, None)
            }
        };
        let started = CallCommand::new(job.clone(), secrets.clone());
        self.cx.services.calls.command_started(self.cx.call, started.clone());
        if let Some(place) = place {
            place.started(started.clone());
        }
        if let Some(gate) = &self.cx.services.write_gate {
            gate.command_started(started.clone());
        }
        if let Some(recorder) = &self.cx.services.recorder {
            recorder.command_started(self.cx.call, started);
        }
        self.shell.add_job(job.id(), guarded.as_ref().map(|guarded| guarded.changes.clone()));
        let directory = self.directory();
        let confined = if self.shell.claim_sandbox_explanation() {
            self.confined
        } else {
            self.confined.without_explanation()
        };
        let running = RunningCommand {
            job,
            directory,
            notes: self.notes,
            confined,
            guarded,
            secrets,
            environment: command.environment,
            with_login,
            variables: self.request.variables,
        };
        Ok((running, streams))
    }

    /// Starts a command that something around this system confines.
    fn start_limited<S>(
        &self,
        settings: &SandboxSettings,
        command: &Command,
        start: impl StartJob<S>,
    ) -> Result<(Arc<Job>, S), Error> {
        let jobs = self.shell.jobs();
        let tmp = jobs.tmp(self.host.tmp()).map_err(|error| job_error(&error))?;
        let sandbox = command_sandbox(self.cx.services, settings, &tmp);
        start(jobs, command, StartOptions::limited(&sandbox)).map_err(|error| job_error(&error))
    }

    fn start_sandboxed<S>(
        &self,
        settings: &SandboxSettings,
        command: &mut Command,
        secrets: &Secrets,
        start: impl StartJob<S>,
    ) -> Result<((Arc<Job>, S), Guarded), Error> {
        let (host, services, jobs) = (self.host, self.cx.services, self.shell.jobs());
        let tmp = jobs.tmp(host.tmp()).map_err(|error| job_error(&error))?;
        let seen = visible_tmp(host.enforced().level, &tmp);
        command.environment.push(("TMPDIR".into(), seen.into()));
        let network = effective_network(settings, host.enforced());
        let Command { environment, script, .. } = &mut *command;
        add_session_caches(environment, script, seen, network != Network::None, |path| {
            may_write(services, path)
        });
        match network {
            Network::None => add_offline_variables(&mut command.environment),
            Network::List => {
                let needs_proxy = !host.enforced().level.has_namespaces();
                let port = needs_proxy.then(|| jobs.proxy_port()).transpose();
                let port = port.map_err(|error| job_error(&error))?;
                set_proxy_variables(&mut command.environment, port);
            }
            Network::All => {}
        }
        if let Some(inspection) =
            host.inspection().filter(|_| host.enforced().level.has_namespaces())
        {
            inspection.prepare(host.tmp(), &command.environment);
            inspection.add_variables(&mut command.environment);
        }
        // Hosts that were approved for this command are for no other one, also if it cannot be started.
        let id = jobs.reserve_id();
        if let Some(network) = self.shell.network() {
            network.set_rules(session_rules(services, self.cx.session));
            network.allow_once(id.as_str(), self.cx.hosts.clone());
        }
        let sandbox = command_sandbox(services, settings, &tmp);
        let shown = shown_command(&command.script, secrets);
        let changes = CommandChanges::begin(
            &services.paths.workspace,
            services.paths.hidden.own(),
            services.history.journal().cloned(),
            About { command: Some(shown), ..self.cx.about.clone() },
            host.running_changes(),
        );
        let rules = services.paths.path_rules.clone();
        let guard = Arc::new(CommandGuard::new(rules, changes.clone(), &tmp, &command.directory));
        let options = StartOptions::sandboxed(&sandbox, guard.clone()).with_id(id);
        let started = start(jobs, command, options).map_err(|error| job_error(&error))?;
        changes.set_job_id(started.0.id());
        Ok((started, Guarded { guard, changes }))
    }
}

/// Starts a job, and returns it with its streams, if they are for the caller.
trait StartJob<S>:
    FnOnce(&Jobs, &Command, StartOptions<'_>) -> Result<(Arc<Job>, S), JobError>
{
}

impl<S, F> StartJob<S> for F where
    F: FnOnce(&Jobs, &Command, StartOptions<'_>) -> Result<(Arc<Job>, S), JobError>
{
}

/// The error if the path of a root no longer leads to it. No command runs there.
fn replaced_root_error(root: &Root) -> Error {
    if root.is_removed() {
        return removed_root_error(root.path());
    }
    let root = root.path();
    let shown = visible_name(root.as_os_str().as_encoded_bytes());
    let message = format!("{shown} is not the directory that it was when this session started");
    Error::new(ErrorKind::Stale, message).hint(
        "It was renamed or replaced. Nothing was run. File tools still use the old directory; the operator can move it back, or start the server again.",
    )
}

/// First line of a command, for the history.
fn shown_command(script: &[u8], secrets: &Secrets) -> String {
    // Masked before truncation: a truncated token is not recognized.
    visible_name(one_line(&secrets.mask_command(&visible(script)), COMMAND_CHARS).as_bytes())
}

/// `EACCES` of Linux.
const EACCES: i32 = 13;

/// A failure to start or run a command, worded so that it is not taken for the command's own failure.
pub(crate) fn job_error(error: &JobError) -> Error {
    let kind = match error {
        JobError::TooMany(_) | JobError::TooManyInAll(_) => ErrorKind::Limit,
        _ => ErrorKind::Io,
    };
    let hint = match error {
        JobError::TooMany(_) => {
            format!("End some of them with {KILL_SHELL}; {LIST_SHELLS} lists them.")
        }
        JobError::TooManyInAll(_) => {
            format!(
                "Wait until one has ended, or end one with {KILL_SHELL}; {LIST_SHELLS} lists those of this session."
            )
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
