//! What is said of a command: what it wrote, how it ended, what it left.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib_exec::{Ending, Exit, Process, Refusal, Snapshot, Status};
use toolcrib_text::{ExcerptOptions, ExcerptShown, Secrets, visible_name};

use super::exit_status::{command_answers, script_answers};
use super::pipe::failed_parts;
use crate::cx::{Cx, StartedCommand};
use crate::error::{Error, ErrorKind};
use crate::names::{BASH_ID, BASH_OUTPUT, CWD, HEAD_LINES, KILL_SHELL, TAIL_LINES};
use crate::network::notes::{self, HostNote};
use crate::output_notes::{bracketed, escape_note};
use crate::phrases::{counted, first_of};
use crate::reply::Reply;
use crate::sandbox::{Danger, refusals};
use crate::shell::Variables;
use crate::tools::changed_files::Changes;
use crate::tools::command_messages::{how, unix_seconds};
use crate::tools::shell_output::{
    OutputLog, dropped_note, excerpt, looks_binary, masked_note, whole_characters,
};

/// So many of the processes that are left are named.
const NAMED: usize = 5;

/// Characters of a command in metadata.
const COMMAND_CHARS: usize = 1_000;

/// A command that ended, or is told about while it runs.
pub(super) struct Report {
    started: StartedCommand,
    now: Snapshot,
    shown: ExcerptShown,
    /// Stderr, if it is shown apart.
    errors: Option<ExcerptShown>,
    /// Whether exit code 1 is an answer and no failure.
    exit_one_answers: bool,
    /// Lines of output that imitate our own.
    escaped_lines: usize,
    /// Up to where the output is shown: the beginning of what may be secret waits for the rest of it.
    read_to: u64,
    left: Vec<Process>,
    /// What the caller should know besides the output.
    notes: Vec<String>,
    directory: String,
    kept: bool,
    changes: Changes,
    /// The exit codes of the parts of its last pipe.
    pipe_codes: Vec<i32>,
    /// The session ends with this call, and everything that it has started.
    last_call: bool,
    /// The hosts that it tried to reach.
    hosts: Vec<HostNote>,
    /// Contents that were refused, in words, and the paths of their files.
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
        let end = |log: &dyn OutputLog, written| match now.closed {
            true => written,
            false => whole_characters(log, secrets, written),
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
        let left = if now.all_exited { Vec::new() } else { started.job.processes() };
        let mut notes = std::mem::take(&mut started.notes);
        let left_by_shell = now.ended.as_ref().and_then(|ended| ended.shell_state.as_ref());
        let script = String::from_utf8_lossy(started.job.script());
        notes.extend(left_by_shell.and_then(|left| failed_parts(&script, left)));
        let exit_one_answers = match left_by_shell {
            Some(left) => command_answers(&left.last_command),
            None => script_answers(&script),
        };
        let pipe_codes = left_by_shell.map(|left| left.pipe_codes.clone()).unwrap_or_default();
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
            exit_one_answers,
            escaped_lines: escaped.map_or(0, |(_, lines)| lines),
            read_to,
            left,
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

    /// Says that nothing can be asked about it later: the session ends with this call. What it left running
    /// is ended now.
    pub(super) fn end_with_the_session(&mut self) {
        self.last_call = true;
        if self.left.is_empty() {
            return;
        }
        self.started.job.end(Ending::Prompt, Status::Killed);
        self.now.all_exited = self.started.job.wait(super::DYING, |now| now.all_exited).all_exited;
        let left = std::mem::take(&mut self.left);
        let names = first_of(&left, NAMED, |process| visible_name(process.name.as_bytes()));
        self.notes.push(format!(
            "{} that it had left running: {names}: ended with this call; {KEEPS_RUNNING}",
            counted(left.len() as u64, "process")
        ));
    }

    /// Says which files kept their old content because the new one can make programs run code, in a line for each
    /// reason.
    pub(super) fn note_reviews(&mut self, cx: &Cx<'_>) {
        let guard = self.started.guarded.as_ref().map(|(guard, _)| guard);
        let refused = guard.map(|guard| guard.take_refused()).unwrap_or_default();
        let mut unknown = Vec::new();
        for (path, danger) in &refused {
            let Danger::Variables(variables) = danger else {
                unknown.push(cx.show_real(path));
                continue;
            };
            let hint = for_one_command(variables).unwrap_or_default();
            let variables = first_of(variables, NAMED, |one| visible_name(one.as_bytes()));
            self.review_notes.push(format!(
                "{} was not changed, since this can make programs run code: {variables}{hint}",
                cx.show_real(path)
            ));
        }
        if let Some(first) = unknown.first() {
            self.review_notes.push(format!(
                "not written, since programs run what it says and no commit from before this session says that: {}. \
                 The old content stays. The user can write it outside: git checkout -- {first}",
                first_of(&unknown, NAMED, String::clone)
            ));
        }
        self.review_notes.truncate(refusals::MAX_LINES);
        self.reviewed = refused.into_iter().map(|(path, _)| path).collect();
    }

    /// Says which hosts it tried to reach, and which rule decided.
    pub(super) fn note_hosts(&mut self, cx: &Cx<'_>) {
        self.hosts = cx.take_host_notes(&self.started.job);
        self.notes.extend(notes::lines(&self.hosts));
    }

    /// Says something else.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Says which files it changed.
    pub(super) fn look_for_changes(&mut self, cx: &Cx<'_>) {
        if let Some((_, trail)) = &self.started.guarded {
            self.changes = Changes::of(cx, trail);
            self.notes.extend(self.changes.notes());
        }
    }

    /// Hands what the command left to the next: its variables, and where it was if it was not sent there
    /// for this once.
    pub(super) fn carry(&mut self, cx: &Cx<'_>, with_directory: bool) -> Result<(), Error> {
        let Some(mut left) = self.now.ended.as_mut().and_then(|ended| ended.shell_state.take())
        else {
            return Ok(());
        };
        for given in &self.started.given {
            restore(&mut left.environment, given, &self.started.environment);
        }
        if !cx.shell()?.carry_environment(left.environment, self.started.with_login) {
            self.notes
                .push("what it exported is too much to be carried to the next command".to_owned());
        }
        let Some(directory) = left.directory.filter(|_| with_directory) else { return Ok(()) };
        match cx.carry_directory(&directory) {
            Ok(shown) if shown != self.started.directory => {
                self.notes.push(format!("{CWD}: {shown}"));
                self.directory = shown;
            }
            Ok(_) => {}
            Err(outside) => self.notes.push(format!(
                "it ended in {outside}, outside the workspace; the next command begins in {}",
                self.started.directory
            )),
        }
        Ok(())
    }

    /// A command of which nothing runs and all was shown need not be remembered.
    pub(super) fn keep_or_forget(&mut self, cx: &Cx<'_>) -> Result<(), Error> {
        self.kept = !self.left.is_empty() || self.left_out() > 0 || !self.now.closed;
        let (jobs, id) = (cx.shell()?.jobs(), self.started.job.id());
        if self.kept {
            cx.shell()?.read_to(id, self.read_to);
        } else {
            // The keeper may still be about to say that it is over.
            self.started.job.wait(super::QUIET, |now| now.all_exited);
            jobs.forget(id);
        }
        Ok(())
    }

    /// The answer to a call whose command has ended.
    pub(super) fn answer(self) -> Result<Reply, Error> {
        let exit = self.now.ended.as_ref().map_or(Exit::Code(0), |ended| ended.exit);
        match exit {
            Exit::Code(0) => Ok(self.reply("")),
            Exit::Code(1) if self.exit_one_answers => Ok(self.reply("exit code 1")),
            exit => Err(self.error(ErrorKind::Failed, how(exit))),
        }
    }

    /// The answer to a call whose command goes on.
    pub(super) fn moved_to_background(mut self, cx: &Cx<'_>, seconds: f64) -> Result<Reply, Error> {
        let id = self.started.job.id().to_owned();
        cx.shell()?.read_to(&id, self.read_to);
        self.left.clear();
        self.notes.push(format!(
            "still running after {seconds} s, and goes on in the background as {id}: {BASH_OUTPUT} waits for it, {KILL_SHELL} ends it"
        ));
        Ok(self.reply("").with("timed_out", true))
    }

    pub(super) fn error(mut self, kind: ErrorKind, message: String) -> Error {
        self.note_refusals();
        self.note_what_is_missing();
        let confined = self.started.confined.note();
        let notes = self.notes.iter().chain(&confined).map(bracketed).collect::<String>();
        let error = Error::new(kind, message).detail(self.output()).hint(notes.trim_end());
        self.metadata().into_iter().fold(error, |error, (key, value)| error.with(key, value))
    }

    fn reply(mut self, ending: &str) -> Reply {
        self.note_refusals();
        self.note_what_is_missing();
        let mut text = self.output();
        let ending = (!ending.is_empty()).then(|| ending.to_owned());
        let notes = ending.into_iter().chain(std::mem::take(&mut self.notes));
        let confined = self.started.confined.note();
        text.extend(notes.chain(confined).map(bracketed));
        Reply::new(text).with_all(self.metadata())
    }

    /// The output of the command, stderr behind stdout if they are shown apart.
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

    /// Lines of both streams that are not shown.
    fn left_out(&self) -> u64 {
        self.shown.left_out + self.errors.as_ref().map_or(0, |errors| errors.left_out)
    }

    /// Says what the sandbox refused, and what would allow it.
    fn note_refusals(&mut self) {
        let job = &self.started.job;
        let is_new = |refusal: &Refusal| match refusal {
            Refusal::Write(path, _) => !self.reviewed.contains(path),
            _ => true,
        };
        let told: Vec<Refusal> = job.refusals().into_iter().filter(is_new).collect();
        let lines = refusals::MAX_LINES.saturating_sub(self.review_notes.len());
        let notes = refusals::notes(&told, &self.shown.text, job.directory(), lines);
        self.notes.append(&mut self.review_notes);
        self.notes.extend(notes);
    }

    fn note_what_is_missing(&mut self) {
        let id = self.started.job.id();
        if self.left_out() > 0 {
            let lines = counted(self.shown.lines, "line");
            self.notes.push(match self.last_call {
                false => format!(
                    "{lines} in all; {BASH_OUTPUT} with {BASH_ID} {id} and lines or filter has those left out"
                ),
                true => format!(
                    "{lines} in all; {HEAD_LINES}, {TAIL_LINES} or a file for the output shows others"
                ),
            });
        }
        if !self.left.is_empty() {
            let names =
                first_of(&self.left, NAMED, |process| visible_name(process.name.as_bytes()));
            self.notes.push(format!(
                "still running: {names}: {BASH_OUTPUT} {id} has what they write, {KILL_SHELL} {id} ends them"
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
        if !self.left.is_empty() {
            let left =
                self.left.iter().map(|process| json!({"pid": process.pid, "name": process.name}));
            facts.push(("processes_left", left.collect()));
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

/// The answer to a call that does not wait.
pub(super) fn background(started: StartedCommand) -> Reply {
    let id = started.job.id();
    let mut text = format!(
        "Started {id} in {}: {BASH_OUTPUT} reads what it writes and waits for it, {KILL_SHELL} ends it.\n",
        started.directory
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

/// What a command line cannot keep can be kept elsewhere.
pub(super) const KEEPS_RUNNING: &str =
    "`toolcrib run` and `toolcrib serve` have sessions that last, and keep commands running";

/// How to set a variable of git for one command, if it is one.
fn for_one_command(variables: &[String]) -> Option<String> {
    let name = variables.first()?.split(" (line ").next()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let is_variable = name.contains('.') && name.chars().all(is_name);
    is_variable.then(|| format!(". For one command: git -c {name}=VALUE …; the user can set it"))
}

/// Gives a variable back the value that it had before the call that set it for its command alone.
fn restore(left: &mut Variables, (name, value): &(String, String), before: &Variables) {
    let is_it = |variable: &&(OsString, OsString)| variable.0 == **name;
    if left.iter().find(is_it).is_none_or(|(_, now)| now != value.as_str()) {
        return;
    }
    left.retain(|variable| variable.0 != **name);
    left.extend(before.iter().find(is_it).cloned());
}

fn millis(duration: std::time::Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}
