//! The reply about a command: its output, its exit status, and its side effects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_exec::{Exit, Job, Network, Process, Refusal};
use toolcrib_text::{ExcerptOptions, ExcerptShown, Secrets, visible_name};

use super::exit_code_one::{command_exit_one_is_result, script_exit_one_is_result};
use super::failed_pipe_parts::failed_parts;
use super::finished::{FinishedCommand, Outcome};
use super::network_hints::{localhost_note, offline_note, tmp_note};
use super::other_jobs_note::other_jobs_notes;
use super::refused_contents;
use super::sandbox_hints::{OTHER_WORKSPACES, hidden_note, named_paths, tracing_note};
use crate::command_state::ReadPositions;
use crate::cx::{Cx, PreparedCommand, RunningCommand};
use crate::error::{Error, ErrorKind};
use crate::message_names::{BASH_ID, BASH_OUTPUT, HEAD_LINES, KILL_SHELL, TAIL_LINES};
use crate::network::notes;
use crate::output_notes::{bracketed, escape_note};
use crate::phrases::{counted, first_of};
use crate::reply::Reply;
use crate::sandbox_refusal_notes;
use crate::sandbox_settings::Confined;
use crate::tools::job_status_text::{exit_text, state_and_duration, unix_seconds};
use crate::tools::limit_notes::LimitNote;
use crate::tools::shell_output::{
    OutputLog, dropped_note, excerpt, masked_note, shows_binary_beginning, whole_characters,
};

/// Number of processes or paths to name.
const NAMED: usize = 5;

/// Characters of a command in metadata.
const COMMAND_CHARS: usize = 1_000;

/// A reply about a command. It only describes: the state of the session does not change.
pub(super) struct Report<'a> {
    finished: &'a FinishedCommand,
    shown: ExcerptShown,
    /// stderr, if it is shown separately.
    errors: Option<ExcerptShown>,
    /// Lines of output that imitate notes.
    escaped_lines: usize,
    /// End of the shown output. The beginning of a possible secret is held back until the rest has come.
    read_to: ReadPositions,
    notes: Vec<String>,
    /// The limit that ended the command.
    limit: Option<LimitNote>,
}

impl<'a> Report<'a> {
    /// Makes the excerpt of the output, and the notes.
    pub(super) fn new(
        cx: &Cx<'_>,
        finished: &'a FinishedCommand,
        options: ExcerptOptions,
    ) -> Report<'a> {
        let FinishedCommand { command, now, .. } = finished;
        let (job, secrets) = (&*command.job, &command.secrets);
        let end = |log: &dyn OutputLog, written| {
            if now.closed { written } else { whole_characters(log, secrets, written) }
        };
        let mut read_to = ReadPositions { output: end(job, now.written), errors: 0 };
        let output = show(job, secrets, read_to.output, options);
        let errors = job.errors().zip(now.errors_written).map(|(errors, written)| {
            read_to.errors = end(&errors, written);
            show(&errors, secrets, read_to.errors, options)
        });
        let streams = || [Some(&output), errors.as_ref()].into_iter().flatten();
        let masked = streams().map(|stream| stream.masked).sum();
        let is_binary = streams().any(|stream| stream.is_binary);
        let escaped = escape_note(streams().map(|stream| stream.shown.text.as_str()));
        let mut notes = command.notes.clone();
        let script = String::from_utf8_lossy(job.script());
        notes.extend(finished.shell_state().and_then(|state| failed_parts(&script, state)));
        notes.extend(dropped_note(job));
        notes.extend(masked_note(masked));
        if is_binary {
            notes.push("binary output: only its beginning is shown".to_owned());
        }
        notes.extend(escaped.iter().map(|(note, _)| note.clone()));
        let mut report = Report {
            finished,
            shown: output.shown,
            errors: errors.map(|errors| errors.shown),
            escaped_lines: escaped.map_or(0, |(_, lines)| lines),
            read_to,
            notes,
            limit: None,
        };
        report.add_notes(cx);
        report
    }

    /// Positions from which BashOutput continues. `None` if nothing is left to read.
    pub(super) fn unread_from(&self) -> Option<ReadPositions> {
        let FinishedCommand { outcome, remaining, now, .. } = self.finished;
        let is_complete = *outcome == Outcome::Exited
            && remaining.is_empty()
            && self.omitted_lines() == 0
            && now.closed;
        (!is_complete).then_some(self.read_to)
    }

    /// The reply to the call.
    pub(super) fn reply(self) -> Result<Reply, Error> {
        let now = &self.finished.now;
        match self.finished.outcome {
            Outcome::Exited => match now.ended.as_ref().map_or(Exit::Code(0), |ended| ended.exit) {
                Exit::Code(0) => Ok(self.success("")),
                Exit::Code(1) if self.exit_one_is_result() => Ok(self.success("exit code 1")),
                exit => Err(self.error(ErrorKind::Failed, exit_text(exit))),
            },
            Outcome::Killed { timeout, .. } => {
                let ended = if now.all_exited {
                    "and was killed with its child processes"
                } else {
                    "and is being killed"
                };
                let seconds = timeout.as_secs_f64();
                let message = format!("the command took longer than {seconds} s {ended}");
                Err(self.error(ErrorKind::Timeout, message))
            }
            Outcome::InBackground { .. } => Ok(self.success("").with("timed_out", true)),
        }
    }

    /// Whether exit code 1 is a result, not a failure.
    fn exit_one_is_result(&self) -> bool {
        match self.finished.shell_state() {
            Some(state) => command_exit_one_is_result(&state.last_command),
            None => {
                let script = self.finished.command.job.script();
                script_exit_one_is_result(&String::from_utf8_lossy(script))
            }
        }
    }

    fn error(self, kind: ErrorKind, message: String) -> Error {
        let confined = self.finished.command.confined.note();
        let notes = self.notes.iter().chain(&confined).map(bracketed).collect::<String>();
        let error = Error::new(kind, message).detail(self.output()).hint(notes.trim_end());
        self.metadata().into_iter().fold(error, |error, (key, value)| error.with(key, value))
    }

    fn success(&self, ending: &str) -> Reply {
        let mut text = self.output();
        let ending = (!ending.is_empty()).then(|| ending.to_owned());
        let confined = self.finished.command.confined.note();
        let notes = ending.iter().chain(&self.notes).chain(&confined);
        text.extend(notes.map(bracketed));
        Reply::new(text).with_all(self.metadata())
    }

    /// Adds the notes that do not describe the output.
    fn add_notes(&mut self, cx: &Cx<'_>) {
        let finished = self.finished;
        let job = &finished.command.job;
        let limits = cx.command_limits();
        self.limit = LimitNote::of(job, &finished.now, limits, &self.output());
        self.notes.extend(self.limit.as_ref().map(LimitNote::text));
        self.notes.extend(finished.carry_notes.iter().cloned());
        if !finished.ended_with_session.is_empty() {
            let names = names(&finished.ended_with_session);
            self.notes.push(format!("ended with this call: {names}. {KEEP_RUNNING_HINT}"));
        }
        if let Outcome::Killed { is_wanted: false, .. } = finished.outcome {
            self.notes.push(format!("it cannot continue after this call. {KEEP_RUNNING_HINT}"));
        }
        if finished.outcome == Outcome::Exited && finished.command.guarded.is_some() {
            self.add_sandbox_hints(cx);
        }
        if finished.outcome == Outcome::Exited {
            self.add_other_jobs(cx);
        }
        self.notes.extend(notes::lines(&finished.hosts));
        self.notes.extend(finished.changes.notes());
        if let Outcome::InBackground { timeout } = finished.outcome {
            self.notes.push(format!(
                "still running after {} s, now in the background as {}: {BASH_OUTPUT} waits for it, {KILL_SHELL} ends it",
                timeout.as_secs_f64(),
                job.id()
            ));
        }
        self.add_refusals(cx);
        self.add_omissions();
    }

    /// Adds notes about hidden paths that the command named, and about failed tracing.
    fn add_sandbox_hints(&mut self, cx: &Cx<'_>) {
        let RunningCommand { job, environment, .. } = &self.finished.command;
        let home = environment.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| Path::new(home));
        let (script, output) = (String::from_utf8_lossy(job.script()), self.output());
        let named = named_paths(&script, &output, job.directory(), home);
        let hidden = &cx.paths().hidden;
        let secrets: BTreeSet<&Path> =
            named.iter().filter_map(|path| hidden.secret_containing(path)).collect();
        let (others, secrets): (Vec<_>, Vec<_>) = secrets
            .into_iter()
            .map(Path::to_owned)
            .partition(|secret| hidden.contains_other_workspaces(secret));
        self.notes.extend(hidden_note(&secrets, home));
        self.notes.extend((!others.is_empty()).then(|| OTHER_WORKSPACES.to_owned()));
        self.notes.extend(tracing_note(&output).map(str::to_owned));
        let network = match &self.finished.command.confined {
            Confined::Within { network, level, .. } if level.has_namespaces() => *network,
            _ => Network::All,
        };
        let is_offline = network == Network::None
            && self.finished.now.ended.as_ref().is_some_and(|ended| ended.exit != Exit::Code(0))
            && !job.refusals().iter().any(Refusal::is_network);
        if is_offline {
            self.notes.extend(offline_note(&cx.paths().settings, &output));
        }
        let has_own_tmp = matches!(&self.finished.command.confined, Confined::Within { level, .. } if level.has_namespaces());
        if has_own_tmp
            && self.finished.now.ended.as_ref().is_some_and(|ended| ended.exit != Exit::Code(0))
        {
            self.notes.extend(tmp_note(&output).map(str::to_owned));
        }
        if network.is_private() {
            self.notes.extend(localhost_note(&script, &output).map(str::to_owned));
        }
    }

    /// Adds notes about other running jobs: those whose processes the command looked for, and the one that uses its
    /// port.
    fn add_other_jobs(&mut self, cx: &Cx<'_>) {
        let RunningCommand { job, confined, .. } = &self.finished.command;
        let Ok(shell) = cx.shell() else { return };
        let sees_only_own =
            matches!(confined, Confined::Within { level, .. } if level.has_namespaces());
        let (script, output) = (String::from_utf8_lossy(job.script()), self.output());
        let others = (shell.jobs(), job.id());
        self.notes.extend(other_jobs_notes(&script, &output, sees_only_own, others));
        let ended = &self.finished.ended_jobs;
        let told =
            |job: &Arc<Job>| format!("{} {}", job.id(), state_and_duration(job, &job.snapshot()));
        if !ended.is_empty() {
            let has_output = ended.iter().any(|job| job.snapshot().written > 0);
            let output = if has_output {
                format!("{BASH_OUTPUT} shows the output")
            } else {
                "no output".into()
            };
            let ended = first_of(ended, NAMED, told);
            self.notes.push(format!("in the background: {ended}; {output}"));
        }
    }

    /// Adds notes about operations that the sandbox refused, and about the settings that would allow them.
    fn add_refusals(&mut self, cx: &Cx<'_>) {
        let FinishedCommand { command, refused_contents: contents, .. } = self.finished;
        let job = &command.job;
        let content_notes = refused_contents::notes(contents, |path| cx.show_real(path));
        let is_content = |path: &PathBuf| contents.iter().any(|(refused, _)| refused == path);
        let is_other =
            |refusal: &Refusal| !matches!(refusal, Refusal::Write(path, _) if is_content(path));
        let others: Vec<Refusal> = job.refusals().into_iter().filter(is_other).collect();
        let lines = sandbox_refusal_notes::MAX_LINES.saturating_sub(content_notes.len()).max(1);
        let notes = sandbox_refusal_notes::notes(
            &others,
            &self.shown.text,
            job.directory(),
            lines,
            (&cx.paths().settings, &cx.command_policy()),
        );
        self.notes.extend(content_notes);
        self.notes.extend(notes);
    }

    /// Adds notes about omitted lines, and about processes that still run.
    fn add_omissions(&mut self) {
        let FinishedCommand { command, remaining, is_last_call, .. } = self.finished;
        let id = command.job.id();
        if self.omitted_lines() > 0 {
            let lines = counted(self.shown.lines, "line");
            self.notes.push(if *is_last_call {
                format!(
                    "{lines} in total; use {HEAD_LINES}, {TAIL_LINES} or redirect to a file to see others"
                )
            } else {
                format!(
                    "{lines} in total; {BASH_OUTPUT} with {BASH_ID} {id} and lines or filter shows the omitted ones"
                )
            });
        }
        if !remaining.is_empty() {
            let names = names(remaining);
            self.notes.push(format!(
                "still running as {id}: {names}; {BASH_OUTPUT} shows the output, {KILL_SHELL} ends it"
            ));
        }
    }

    /// The output of the command. If the streams are separate, stderr follows stdout.
    fn output(&self) -> String {
        match &self.errors {
            Some(errors) if !errors.text.is_empty() => {
                format!("{}{}{}", self.shown.text, bracketed("stderr:"), errors.text)
            }
            _ if self.shown.text.is_empty() => bracketed("no output"),
            _ => self.shown.text.clone(),
        }
    }

    fn is_truncated(&self) -> bool {
        let parts = [Some(&self.shown), self.errors.as_ref()];
        parts.into_iter().flatten().any(|part| part.left_out > 0 || part.has_cut_lines)
    }

    /// Lines of both streams that are omitted.
    fn omitted_lines(&self) -> u64 {
        self.shown.left_out + self.errors.as_ref().map_or(0, |errors| errors.left_out)
    }

    fn metadata(&self) -> Vec<(&'static str, Value)> {
        let FinishedCommand { command, now, remaining, hosts, .. } = self.finished;
        let mut facts = vec![
            ("status", now.status.name().into()),
            ("duration_ms", millis(now.duration)),
            ("cwd", self.finished.directory.clone().into()),
            ("lines", self.shown.lines.into()),
            ("bytes", now.written.into()),
            ("truncated", self.is_truncated().into()),
            ("command", command.shown_script(COMMAND_CHARS).into()),
            ("started_at", unix_seconds(command.job.created()).into()),
        ];
        if let Some(errors) = &self.errors {
            facts.push(("stdout", self.shown.text.clone().into()));
            facts.push(("stderr", errors.text.clone().into()));
        }
        let pipe_codes = self.finished.shell_state().map(|state| state.pipe_codes.as_slice());
        if let Some(codes) = pipe_codes.filter(|codes| codes.len() > 1) {
            facts.push(("pipe_exit_codes", codes.into()));
        }
        if !now.gap.is_empty() {
            facts.push(("dropped_bytes", (now.gap.end - now.gap.start).into()));
        }
        facts.extend(command.confined.facts());
        facts.extend(self.finished.changes.facts());
        if let Some(ended) = &now.ended {
            facts.push(match ended.exit {
                Exit::Code(code) => ("exit_code", code.into()),
                Exit::Signal(signal) => ("signal", signal.into()),
            });
            facts.push(("cpu_ms", millis(ended.cpu)));
            facts.push(("peak_memory_bytes", ended.peak_bytes.into()));
        }
        facts.extend(self.limit.as_ref().map(LimitNote::fact));
        if self.escaped_lines > 0 {
            facts.push(("escaped_lines", self.escaped_lines.into()));
        }
        if let Some(refused) = sandbox_refusal_notes::facts(&command.job.refusals()) {
            facts.push(("refused", refused));
        }
        if let Some(hosts) = notes::facts(hosts) {
            facts.push(("hosts", hosts));
        }
        let unread_from = self.unread_from().filter(|_| !self.finished.is_last_call);
        if let Some(ReadPositions { output, .. }) = unread_from {
            facts.push(("bash_id", command.job.id().into()));
            facts.push(("cursor", output.into()));
        }
        if !remaining.is_empty() {
            let processes =
                remaining.iter().map(|process| json!({"pid": process.pid, "name": process.name}));
            facts.push(("processes_left", processes.collect()));
        }
        facts
    }
}

/// The shown part of a stream.
struct ShownStream {
    shown: ExcerptShown,
    /// Number of masked values.
    masked: usize,
    is_binary: bool,
}

/// Makes the excerpt of a stream. Binary output shows its beginning only.
fn show(
    log: &dyn OutputLog,
    secrets: &Secrets,
    end: u64,
    mut options: ExcerptOptions,
) -> ShownStream {
    let is_binary = shows_binary_beginning(log, &options);
    if is_binary {
        (options.whole_chars, options.chars) = (super::BINARY_CHARS, super::BINARY_CHARS);
    }
    let (shown, masked) = excerpt(log, secrets, 0..end, options);
    ShownStream { shown, masked, is_binary }
}

/// The reply to a dry run.
pub(super) fn rehearsal(prepared: &PreparedCommand<'_>, script: &str) -> Reply {
    let (directory, confined) = (prepared.directory(), prepared.confined());
    let held = confined.phrase();
    let text = format!("Dry run, nothing was run. Would run in {directory}, {held}:\n{script}\n");
    Reply::new(text).with_all(confined.facts())
}

/// The reply to a call with `run_in_background`.
pub(super) fn background(command: &RunningCommand) -> Reply {
    let id = command.job.id();
    let place = match command.directory.as_str() {
        "." => String::new(),
        directory => format!(" in {directory}"),
    };
    let mut text = format!(
        "Started {id}{place}. {BASH_OUTPUT} reads its output and waits for it, {KILL_SHELL} ends it.\n"
    );
    text.extend(command.notes.iter().map(bracketed));
    text.extend(command.confined.note().iter().map(bracketed));
    Reply::new(text)
        .with("bash_id", id)
        .with("status", command.job.snapshot().status.name())
        .with("cwd", command.directory.clone())
        .with("command", command.shown_script(COMMAND_CHARS))
        .with("started_at", unix_seconds(command.job.created()))
        .with_all(command.confined.facts())
}

/// Advice for the command line, whose sessions end with each call.
pub(super) const KEEP_RUNNING_HINT: &str =
    "Use `toolcrib run` or `toolcrib serve` to keep commands running";

/// The names of the first processes.
fn names(processes: &[Process]) -> String {
    first_of(processes, NAMED, |process| visible_name(process.name.as_bytes()))
}

fn millis(duration: std::time::Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}
