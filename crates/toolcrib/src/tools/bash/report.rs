//! The reply about a command: its output, its exit status, and its side effects.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib_exec::{Ending, Exit, Process, Refusal, Snapshot, Status};
use toolcrib_text::{ExcerptOptions, ExcerptShown, Secrets, visible_name};

use super::exit_code_one::{command_exit_one_is_result, script_exit_one_is_result};
use super::failed_pipe_parts::failed_parts;
use super::refused_contents;
use super::sandbox_hints::{hidden_note, named_paths, tracing_note};
use crate::command_state::Variables;
use crate::cx::{Cx, StartedCommand};
use crate::dialect_names::{BASH_ID, BASH_OUTPUT, CWD, HEAD_LINES, KILL_SHELL, TAIL_LINES};
use crate::error::{Error, ErrorKind};
use crate::network::notes::{self, HostNote};
use crate::output_notes::{bracketed, escape_note};
use crate::phrases::{counted, first_of};
use crate::reply::Reply;
use crate::sandbox_settings::refusals;
use crate::tools::changed_files::Changes;
use crate::tools::command_messages::{exit_text, unix_seconds};
use crate::tools::shell_output::{
    OutputLog, dropped_note, excerpt, looks_binary, masked_note, whole_characters,
};

/// Number of processes or paths to name.
const NAMED: usize = 5;

/// Characters of a command in metadata.
const COMMAND_CHARS: usize = 1_000;

/// A reply in progress about a command that ended or still runs.
pub(super) struct Report {
    started: StartedCommand,
    now: Snapshot,
    shown: ExcerptShown,
    /// stderr, if it is shown separately.
    errors: Option<ExcerptShown>,
    /// Whether exit code 1 is a result, not a failure.
    exit_one_is_result: bool,
    /// Lines of output that imitate notes.
    escaped_lines: usize,
    /// End of the shown output. The beginning of a possible secret is held back until the rest has come.
    read_to: u64,
    /// Processes that still run.
    remaining: Vec<Process>,
    notes: Vec<String>,
    directory: String,
    kept: bool,
    changes: Changes,
    /// Exit codes of the parts of its last pipe.
    pipe_codes: Vec<i32>,
    /// The session ends with this call, and so do its processes.
    last_call: bool,
    /// The hosts that the command tried to reach.
    hosts: Vec<HostNote>,
    /// Notes about refused file contents, and the paths of these files.
    review_notes: Vec<String>,
    reviewed: Vec<PathBuf>,
}

impl Report {
    pub(super) fn new(
        mut started: StartedCommand,
        now: Snapshot,
        options: ExcerptOptions,
    ) -> Report {
        let (job, secrets) = (&*started.job, &started.secrets);
        let end = |log: &dyn OutputLog, written| {
            if now.closed { written } else { whole_characters(log, secrets, written) }
        };
        let read_to = end(job, now.written);
        let output = show(job, secrets, read_to, options);
        let errors = job
            .errors()
            .zip(now.errors_written)
            .map(|(errors, written)| show(&errors, secrets, end(&errors, written), options));
        let streams = || [Some(&output), errors.as_ref()].into_iter().flatten();
        let masked = streams().map(|stream| stream.masked).sum();
        let is_binary = streams().any(|stream| stream.is_binary);
        let escaped = escape_note(streams().map(|stream| stream.shown.text.as_str()));
        let remaining = if now.all_exited { Vec::new() } else { started.job.processes() };
        let mut notes = std::mem::take(&mut started.notes);
        let shell_state = now.ended.as_ref().and_then(|ended| ended.shell_state.as_ref());
        let script = String::from_utf8_lossy(started.job.script());
        notes.extend(shell_state.and_then(|state| failed_parts(&script, state)));
        let exit_one_is_result = match shell_state {
            Some(state) => command_exit_one_is_result(&state.last_command),
            None => script_exit_one_is_result(&script),
        };
        let pipe_codes = shell_state.map(|state| state.pipe_codes.clone()).unwrap_or_default();
        notes.extend(dropped_note(&started.job, &now));
        notes.extend(masked_note(masked));
        if is_binary {
            notes.push("binary output: only its beginning is shown".to_owned());
        }
        notes.extend(escaped.iter().map(|(note, _)| note.clone()));
        let directory = started.directory.clone();
        Report {
            started,
            now,
            shown: output.shown,
            errors: errors.map(|errors| errors.shown),
            exit_one_is_result,
            escaped_lines: escaped.map_or(0, |(_, lines)| lines),
            read_to,
            remaining,
            notes,
            directory,
            kept: true,
            changes: Changes::default(),
            pipe_codes,
            last_call: false,
            hosts: Vec::new(),
            review_notes: Vec::new(),
            reviewed: Vec::new(),
        }
    }

    /// Ends the processes that the command left running: the session ends with this call.
    pub(super) fn end_with_session(&mut self) {
        self.last_call = true;
        if self.remaining.is_empty() {
            return;
        }
        self.started.job.end(Ending::Prompt, Status::Killed);
        self.now.all_exited =
            self.started.job.wait(super::KILL_TIMEOUT, |now| now.all_exited).all_exited;
        let ended = std::mem::take(&mut self.remaining);
        let names = first_of(&ended, NAMED, |process| visible_name(process.name.as_bytes()));
        self.notes.push(format!("ended with this call: {names}. {KEEP_RUNNING_HINT}"));
    }

    /// Adds notes about contents that were not written because they can make programs run code.
    pub(super) fn note_reviews(&mut self, cx: &Cx<'_>) {
        let guard = self.started.guarded.as_ref().map(|(guard, _)| guard);
        let refused = guard.map(|guard| guard.take_refused()).unwrap_or_default();
        self.review_notes = refused_contents::notes(&refused, |path| cx.show_real(path));
        self.reviewed = refused.into_iter().map(|(path, _)| path).collect();
    }

    /// Adds notes about hidden paths that the command named, and about failed tracing.
    pub(super) fn note_sandbox_hints(&mut self, cx: &Cx<'_>) {
        if self.started.guarded.is_none() {
            return;
        }
        let home = self.started.environment.iter().find(|(name, _)| name == "HOME");
        let home = home.map(|(_, home)| Path::new(home));
        let job = &self.started.job;
        let (script, output) = (String::from_utf8_lossy(job.script()), self.output());
        let named = named_paths(&script, &output, job.directory(), home);
        let hidden = &cx.paths().hidden;
        let secrets: BTreeSet<&Path> =
            named.iter().filter_map(|path| hidden.secret_containing(path)).collect();
        let secrets: Vec<PathBuf> = secrets.into_iter().map(Path::to_owned).collect();
        self.notes.extend(hidden_note(&secrets, home));
        self.notes.extend(tracing_note(&output).map(str::to_owned));
    }

    /// Adds notes about the hosts that the command tried to reach, and the rules that decided.
    pub(super) fn note_hosts(&mut self, cx: &Cx<'_>) {
        self.hosts = cx.take_host_notes(&self.started.job);
        self.notes.extend(notes::lines(&self.hosts));
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds notes about the changed files.
    pub(super) fn note_changes(&mut self, cx: &Cx<'_>) {
        if let Some((_, trail)) = &self.started.guarded {
            self.changes = Changes::of(cx, trail);
            self.notes.extend(self.changes.notes());
        }
    }

    /// Carries the exported variables over to the next command, and the working directory unless it was given for
    /// this call only.
    pub(super) fn carry(&mut self, cx: &Cx<'_>, with_directory: bool) -> Result<(), Error> {
        let Some(mut state) = self.now.ended.as_mut().and_then(|ended| ended.shell_state.take())
        else {
            return Ok(());
        };
        for given in &self.started.given {
            restore(&mut state.environment, given, &self.started.environment);
        }
        if !cx.shell()?.carry_environment(state.environment, self.started.with_login) {
            self.notes.push(
                "the exported variables are too large to carry over to the next command".to_owned(),
            );
        }
        let Some(directory) = state.directory.filter(|_| with_directory) else { return Ok(()) };
        match cx.carry_directory(&directory) {
            Ok(shown) if shown != self.started.directory => {
                self.notes.push(format!("{CWD}: {shown}"));
                self.directory = shown;
            }
            Ok(_) => {}
            Err(outside) => self.notes.push(format!(
                "it ended in {outside}, outside the workspace; the next command starts in {}",
                self.started.directory
            )),
        }
        Ok(())
    }

    /// Forgets a command if nothing of it runs and all of its output was shown.
    pub(super) fn keep_or_forget(&mut self, cx: &Cx<'_>) -> Result<(), Error> {
        self.kept = !self.remaining.is_empty() || self.omitted_lines() > 0 || !self.now.closed;
        let (jobs, id) = (cx.shell()?.jobs(), self.started.job.id());
        if self.kept {
            cx.shell()?.read_to(id, self.read_to);
        } else {
            // The shim may still be about to report that everything has exited.
            self.started.job.wait(super::QUIET_PERIOD, |now| now.all_exited);
            jobs.forget(id);
        }
        Ok(())
    }

    /// The reply to a call whose command has ended.
    pub(super) fn finish(self) -> Result<Reply, Error> {
        let exit = self.now.ended.as_ref().map_or(Exit::Code(0), |ended| ended.exit);
        match exit {
            Exit::Code(0) => Ok(self.reply("")),
            Exit::Code(1) if self.exit_one_is_result => Ok(self.reply("exit code 1")),
            exit => Err(self.error(ErrorKind::Failed, exit_text(exit))),
        }
    }

    /// The reply to a call whose command continues in the background.
    pub(super) fn moved_to_background(mut self, cx: &Cx<'_>, seconds: f64) -> Result<Reply, Error> {
        let id = self.started.job.id().to_owned();
        cx.shell()?.read_to(&id, self.read_to);
        self.remaining.clear();
        self.notes.push(format!(
            "still running after {seconds} s, now in the background as {id}: {BASH_OUTPUT} waits for it, {KILL_SHELL} ends it"
        ));
        Ok(self.reply("").with("timed_out", true))
    }

    pub(super) fn error(mut self, kind: ErrorKind, message: String) -> Error {
        self.note_refusals();
        self.note_omissions();
        let confined = self.started.confined.note();
        let notes = self.notes.iter().chain(&confined).map(bracketed).collect::<String>();
        let error = Error::new(kind, message).detail(self.output()).hint(notes.trim_end());
        self.metadata().into_iter().fold(error, |error, (key, value)| error.with(key, value))
    }

    fn reply(mut self, ending: &str) -> Reply {
        self.note_refusals();
        self.note_omissions();
        let mut text = self.output();
        let ending = (!ending.is_empty()).then(|| ending.to_owned());
        let notes = ending.into_iter().chain(std::mem::take(&mut self.notes));
        let confined = self.started.confined.note();
        text.extend(notes.chain(confined).map(bracketed));
        Reply::new(text).with_all(self.metadata())
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

    /// Adds notes about operations that the sandbox refused, and about the settings that would allow them.
    fn note_refusals(&mut self) {
        let job = &self.started.job;
        let is_new = |refusal: &Refusal| match refusal {
            Refusal::Write(path, _) if self.reviewed.contains(path) => false,
            refusal => !refusals::is_unneeded_cache(refusal),
        };
        let new_refusals: Vec<Refusal> = job.refusals().into_iter().filter(is_new).collect();
        let lines = refusals::MAX_LINES.saturating_sub(self.review_notes.len()).max(1);
        let notes = refusals::notes(&new_refusals, &self.shown.text, job.directory(), lines);
        self.notes.append(&mut self.review_notes);
        self.notes.extend(notes);
    }

    fn note_omissions(&mut self) {
        let id = self.started.job.id();
        if self.omitted_lines() > 0 {
            let lines = counted(self.shown.lines, "line");
            self.notes.push(if self.last_call {
                format!(
                    "{lines} in total; use {HEAD_LINES}, {TAIL_LINES} or redirect to a file to see others"
                )
            } else {
                format!(
                    "{lines} in total; {BASH_OUTPUT} with {BASH_ID} {id} and lines or filter shows the omitted ones"
                )
            });
        }
        if !self.remaining.is_empty() {
            let names =
                first_of(&self.remaining, NAMED, |process| visible_name(process.name.as_bytes()));
            self.notes.push(format!(
                "still running as {id}: {names}; {BASH_OUTPUT} shows the output, {KILL_SHELL} ends it"
            ));
        }
    }

    fn metadata(&self) -> Vec<(&'static str, Value)> {
        let mut facts = vec![
            ("status", self.now.status.name().into()),
            ("duration_ms", millis(self.now.duration)),
            ("cwd", self.directory.clone().into()),
            ("lines", self.shown.lines.into()),
            ("bytes", self.now.written.into()),
            ("truncated", self.is_truncated().into()),
            ("command", self.started.command_shown(COMMAND_CHARS).into()),
            ("started_at", unix_seconds(self.started.job.created()).into()),
        ];
        if let Some(errors) = &self.errors {
            facts.push(("stdout", self.shown.text.clone().into()));
            facts.push(("stderr", errors.text.clone().into()));
        }
        if self.pipe_codes.len() > 1 {
            facts.push(("pipe_exit_codes", self.pipe_codes.clone().into()));
        }
        if !self.now.gap.is_empty() {
            facts.push(("dropped_bytes", (self.now.gap.end - self.now.gap.start).into()));
        }
        facts.extend(self.started.confined.facts());
        facts.extend(self.changes.facts());
        if let Some(ended) = &self.now.ended {
            facts.push(match ended.exit {
                Exit::Code(code) => ("exit_code", code.into()),
                Exit::Signal(signal) => ("signal", signal.into()),
            });
            facts.push(("cpu_ms", millis(ended.cpu)));
            facts.push(("peak_memory_bytes", ended.peak_bytes.into()));
        }
        if self.escaped_lines > 0 {
            facts.push(("escaped_lines", self.escaped_lines.into()));
        }
        if let Some(refused) = refusals::facts(&self.started.job.refusals()) {
            facts.push(("refused", refused));
        }
        if let Some(hosts) = notes::facts(&self.hosts) {
            facts.push(("hosts", hosts));
        }
        if self.kept && !self.last_call {
            facts.push(("bash_id", self.started.job.id().into()));
            facts.push(("cursor", self.read_to.into()));
        }
        if !self.remaining.is_empty() {
            let processes = self
                .remaining
                .iter()
                .map(|process| json!({"pid": process.pid, "name": process.name}));
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
    let is_binary = looks_binary(log);
    if is_binary {
        (options.whole_chars, options.chars) = (super::BINARY_CHARS, super::BINARY_CHARS);
        options.line_chars = options.line_chars.min(super::BINARY_CHARS / 4);
    }
    let (shown, masked) = excerpt(log, secrets, 0..end, options);
    ShownStream { shown, masked, is_binary }
}

/// The reply to a call with `run_in_background`.
pub(super) fn background(started: StartedCommand) -> Reply {
    let id = started.job.id();
    let place = match started.directory.as_str() {
        "." => String::new(),
        directory => format!(" in {directory}"),
    };
    let mut text = format!(
        "Started {id}{place}. {BASH_OUTPUT} reads its output and waits for it, {KILL_SHELL} ends it.\n"
    );
    text.extend(started.notes.iter().map(bracketed));
    text.extend(started.confined.note().iter().map(bracketed));
    Reply::new(text)
        .with("bash_id", id)
        .with("status", started.job.snapshot().status.name())
        .with("cwd", started.directory.clone())
        .with("command", started.command_shown(COMMAND_CHARS))
        .with("started_at", unix_seconds(started.job.created()))
        .with_all(started.confined.facts())
}

/// Advice for the command line, whose sessions end with each call.
pub(super) const KEEP_RUNNING_HINT: &str =
    "Use `toolcrib run` or `toolcrib serve` to keep commands running";

/// Restores the value that a variable had before a call that set it for its command only.
fn restore(variables: &mut Variables, (name, value): &(String, String), before: &Variables) {
    let is_it = |variable: &&(OsString, OsString)| variable.0 == **name;
    if variables.iter().find(is_it).is_none_or(|(_, now)| now != value.as_str()) {
        return;
    }
    variables.retain(|variable| variable.0 != **name);
    variables.extend(before.iter().find(is_it).cloned());
}

fn millis(duration: std::time::Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}
