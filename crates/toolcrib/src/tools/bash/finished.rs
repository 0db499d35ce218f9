//! A command at the end of its call. The session takes over its side effects here, so that a reply only describes
//! them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_exec::{Ending, Job, Process, ShellState, Snapshot, Status};
use toolcrib_text::visible_name;

use super::wait::{KILL_TIMEOUT, QUIET_PERIOD, drain};
use crate::command_state::{ReadPositions, SessionShell, Variables};
use crate::cx::{Cx, RunningCommand, job_error};
use crate::error::Error;
use crate::message_names::CWD;
use crate::network::notes::HostNote;
use crate::path_rules::Danger;
use crate::phrases::first_of;
use crate::tools::changed_files::Changes;

/// Variables that a note names.
const NAMED_VARIABLES: usize = 5;

/// A command that exited, was killed, or continues in the background.
pub(super) struct FinishedCommand {
    pub(super) command: RunningCommand,
    pub(super) outcome: Outcome,
    pub(super) now: Snapshot,
    /// Processes that still run.
    pub(super) remaining: Vec<Process>,
    /// Processes that were ended because the session ends with this call.
    pub(super) ended_with_session: Vec<Process>,
    /// Whether the session ends with this call.
    pub(super) is_last_call: bool,
    /// Working directory of the next command, as replies show it.
    pub(super) directory: String,
    /// Notes on the state that the next command starts with.
    pub(super) carry_notes: Vec<String>,
    /// Contents that were not written because they can make programs run code.
    pub(super) refused_contents: Vec<(PathBuf, Danger)>,
    /// The hosts that the command tried to reach.
    pub(super) hosts: Vec<HostNote>,
    pub(super) changes: Changes,
    /// Other jobs that ended in the background since the last reply.
    pub(super) ended_jobs: Vec<Arc<Job>>,
}

/// How a call that ran a command ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// The shell exited.
    Exited,
    /// The command exceeded the timeout and was killed. The caller wanted this, or the session ends with the call.
    Killed { timeout: Duration, is_wanted: bool },
    /// The command exceeded the timeout and continues.
    InBackground { timeout: Duration },
}

impl FinishedCommand {
    /// For a command whose shell has exited. Fails if its exit could not be observed. The next command starts in the
    /// same directory `with_directory`.
    pub(super) fn exited(
        cx: &Cx<'_>,
        command: RunningCommand,
        with_directory: bool,
    ) -> Result<FinishedCommand, Error> {
        let now = drain(&command.job);
        if let Some(broken) = &now.error {
            return Err(job_error(broken));
        }
        let mut finished = FinishedCommand::new(cx, command, now, Outcome::Exited);
        finished.carry(cx.shell()?, cx, with_directory);
        finished.end_with_session();
        finished.refused_contents = match &finished.command.guarded {
            Some(guarded) => guarded.guard.take_refused(),
            None => Vec::new(),
        };
        finished.collect_effects(cx);
        Ok(finished)
    }

    /// Kills a command that exceeded its timeout.
    pub(super) fn killed(
        cx: &Cx<'_>,
        command: RunningCommand,
        timeout: Duration,
        is_wanted: bool,
    ) -> FinishedCommand {
        command.job.end(Ending::Prompt, Status::TimedOut);
        let now = command.job.wait(KILL_TIMEOUT, |now| now.all_exited && now.closed);
        let outcome = Outcome::Killed { timeout, is_wanted };
        let mut finished = FinishedCommand::new(cx, command, now, outcome);
        finished.end_with_session();
        finished.collect_effects(cx);
        finished
    }

    /// Leaves a command that exceeded its timeout running.
    pub(super) fn in_background(
        cx: &Cx<'_>,
        command: RunningCommand,
        timeout: Duration,
    ) -> FinishedCommand {
        let now = command.job.snapshot();
        let outcome = Outcome::InBackground { timeout };
        if let Ok(shell) = cx.shell() {
            shell.await_end(command.job.id());
        }
        let mut finished = FinishedCommand::new(cx, command, now, outcome);
        finished.hosts = cx.take_host_notes(&finished.command.job);
        finished
    }

    fn new(
        cx: &Cx<'_>,
        command: RunningCommand,
        now: Snapshot,
        outcome: Outcome,
    ) -> FinishedCommand {
        FinishedCommand {
            remaining: match outcome {
                // All of them are expected to run.
                Outcome::InBackground { .. } => Vec::new(),
                _ if now.all_exited => Vec::new(),
                _ => command.job.processes(),
            },
            directory: command.directory.clone(),
            command,
            outcome,
            now,
            ended_with_session: Vec::new(),
            is_last_call: cx.session().is_for_one_call(),
            carry_notes: Vec::new(),
            refused_contents: Vec::new(),
            hosts: Vec::new(),
            changes: Changes::default(),
            ended_jobs: cx.shell().map(SessionShell::take_ended).unwrap_or_default(),
        }
    }

    /// State of the shell when it exited.
    pub(super) fn shell_state(&self) -> Option<&ShellState> {
        self.now.ended.as_ref()?.shell_state.as_deref()
    }

    /// Keeps the job for BashOutput, which continues at `unread_from`, or forgets it if nothing is left to read.
    pub(super) fn keep_or_forget(&self, shell: &SessionShell, unread_from: Option<ReadPositions>) {
        let job = &self.command.job;
        match unread_from {
            Some(positions) => shell.set_read_positions(job.id(), positions),
            None => {
                // The shim may still be about to report that everything has exited.
                job.wait(QUIET_PERIOD, |now| now.all_exited);
                shell.forget(job.id());
            }
        }
    }

    /// Carries the exported variables over to the next command, and the working directory unless it was given for
    /// this call only.
    fn carry(&mut self, shell: &SessionShell, cx: &Cx<'_>, with_directory: bool) {
        let RunningCommand { variables, environment: before, with_login, .. } = &self.command;
        let state = self.now.ended.as_ref().and_then(|ended| ended.shell_state.clone());
        let Some(state) = state else { return };
        let mut environment = state.environment.clone();
        for variable in variables {
            restore(&mut environment, variable, before);
        }
        let too_large = shell.carry_environment(environment, *with_login);
        if !too_large.is_empty() {
            let noun = if too_large.len() == 1 { "variable" } else { "variables" };
            let name = |name: &OsString| visible_name(name.as_encoded_bytes());
            self.carry_notes.push(format!(
                "too large to carry over to the next command: the {noun} {}; a file in /tmp can hold the text",
                first_of(&too_large, NAMED_VARIABLES, name)
            ));
        }
        if !with_directory {
            return;
        }
        let Some(directory) = &state.directory else {
            self.directory = cx.next_directory(shell);
            self.carry_notes.push(format!(
                "it ended in a directory that no longer exists; the next command starts in {}",
                self.directory
            ));
            return;
        };
        match cx.carry_directory(directory) {
            Ok(shown) if shown != self.directory => {
                self.carry_notes.push(format!("{CWD}: {shown}"));
                self.directory = shown;
            }
            Ok(_) => {}
            Err(outside) => {
                self.directory = cx.next_directory(shell);
                self.carry_notes.push(format!(
                    "it ended in {outside}, outside the workspace; the next command starts in {}",
                    self.directory
                ));
            }
        }
    }

    /// Ends the processes that the command left running if the session ends with this call.
    fn end_with_session(&mut self) {
        if !self.is_last_call || self.remaining.is_empty() {
            return;
        }
        let job = &self.command.job;
        job.end(Ending::Prompt, Status::Killed);
        self.now.all_exited = job.wait(KILL_TIMEOUT, |now| now.all_exited).all_exited;
        self.ended_with_session = std::mem::take(&mut self.remaining);
    }

    /// Takes the notes on hosts and the changes of files, which later replies do not repeat.
    fn collect_effects(&mut self, cx: &Cx<'_>) {
        self.hosts = cx.take_host_notes(&self.command.job);
        if let Some(guarded) = &self.command.guarded {
            self.changes = Changes::of(cx, &guarded.changes);
        }
    }
}

/// Restores the value that a variable had before a call that set it for its command only.
fn restore(variables: &mut Variables, (name, value): &(String, String), before: &Variables) {
    let is_it = |variable: &&(OsString, OsString)| variable.0 == **name;
    if variables.iter().find(is_it).is_none_or(|(_, now)| now != value.as_str()) {
        return;
    }
    variables.retain(|variable| variable.0 != **name);
    variables.extend(before.iter().find(is_it).cloned());
}
