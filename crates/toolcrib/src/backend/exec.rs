//! Runs a command for a program: separate streams, all of its output, and input while it runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_exec::{CommandOutput, Ending, Exit, Job, OutputStream, Snapshot, Status, Stdin};
use toolcrib_policy::Access;

use super::operation::Operation;
use super::process_control::ProcessControl;
use crate::command_variables::{check_names, quoted, with_exports};
use crate::cx::{CommandRequest, Cx, RunningCommand, job_error};
use crate::error::Error;
use crate::host_asker::HostAsker;
use crate::network::notes::lines as host_lines;
use crate::reply::Reply;
use crate::sandbox_refusal_notes;
use crate::tools::limit_notes::LimitNote;

/// How often cancellation, the time limit and questions about hosts are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How long to wait for processes that were told to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// How often to check whether the processes in the background have exited.
const READ_ON_INTERVAL: Duration = Duration::from_millis(500);

/// How long the output of an ended shell is passed on.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines about denied accesses.
const MAX_REFUSAL_LINES: usize = 20;

/// The terminal type of commands with a terminal.
const TERM: &str = "xterm-256color";

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments. No shell interprets them.
    Arguments(Vec<String>),
    /// A bash script.
    Shell(String),
}

/// The stdin of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessStdin {
    /// This content, then end of file.
    Content(Vec<u8>),
    /// Open until [`ProcessControl::close_stdin`].
    Open,
    /// A terminal, which is also stdout and stderr.
    Terminal(TerminalSize),
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub columns: u16,
}

/// An event of a running command.
#[derive(Debug, Clone, Copy)]
pub enum ExecEvent<'a> {
    /// The command has started.
    Started,
    /// It has written these bytes.
    Output(OutputStream, &'a [u8]),
}

/// Receives the events of a command, one after the other. While it runs, the command may wait.
pub type ExecSink<'a> = dyn Fn(ExecEvent<'_>) + Sync + 'a;

/// A command to run with [`Backend::exec`](super::Backend::exec).
#[derive(Debug, Clone)]
pub struct Exec {
    /// The program.
    pub program: Program,
    /// The working directory. `None` for the first root.
    pub directory: Option<PathBuf>,
    /// Variables for this command only.
    pub environment: BTreeMap<String, String>,
    /// Its stdin.
    pub stdin: ProcessStdin,
    /// The command is killed after this time.
    pub timeout: Option<Duration>,
    /// Controls the command while it runs.
    pub control: Arc<ProcessControl>,
}

/// A command with the receiver of its events.
#[derive(Clone)]
pub(super) struct ExecOperation<'a> {
    pub(super) exec: Exec,
    pub(super) sink: &'a ExecSink<'a>,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Executed {
    /// Its exit code. `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed because it exceeded its time limit.
    pub timed_out: bool,
    /// How long it ran.
    pub duration: Duration,
    /// Id of its changes of files in the journal.
    pub change: Option<u64>,
    /// The accesses that the sandbox denied.
    pub refused: Vec<String>,
    /// Other notes.
    pub notes: Vec<String>,
}

impl Exec {
    /// A command with empty stdin and without a time limit.
    pub fn new(program: Program) -> Exec {
        Exec {
            program,
            directory: None,
            environment: BTreeMap::new(),
            stdin: ProcessStdin::Content(Vec::new()),
            timeout: None,
            control: Arc::default(),
        }
    }

    /// The script, on which the policy decides: the variables and the command.
    fn script(&self) -> String {
        let is_terminal = matches!(self.stdin, ProcessStdin::Terminal(_));
        let term =
            (is_terminal && !self.environment.contains_key("TERM")).then_some(("TERM", TERM));
        let given = self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let script = match &self.program {
            Program::Shell(script) => script.clone(),
            Program::Arguments(arguments) => {
                let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
                format!("exec -- {}", words.join(" "))
            }
        };
        with_exports(term.into_iter().chain(given), &script)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let is_empty = match &self.program {
            Program::Arguments(arguments) => arguments.first().is_none_or(String::is_empty),
            Program::Shell(script) => script.trim().is_empty(),
        };
        if is_empty {
            return Err(Error::invalid("the command is empty").hint("Nothing was run."));
        }
        check_names(self.environment.keys())
    }
}

impl ExecOperation<'_> {
    /// Passes on the output until the shell has exited. Returns whether the command was killed at its time limit.
    fn follow(
        &self,
        cx: &Cx<'_>,
        job: &Job,
        output: &mut CommandOutput,
        ask_waiting: &dyn Fn(),
    ) -> Result<bool, Error> {
        let began = Instant::now();
        let mut last_asked = began;
        let mut exited: Option<Instant> = None;
        let mut emit =
            |stream: OutputStream, bytes: &[u8]| (self.sink)(ExecEvent::Output(stream, bytes));
        loop {
            if exited.is_none() && !job.snapshot().status.is_running() {
                exited = Some(Instant::now());
            }
            // The output of an ended shell is already in the pipes.
            let timeout = if exited.is_some() { Duration::ZERO } else { POLL_INTERVAL };
            let has_output = output.pass_on(timeout, &mut emit);
            if let Err(cancelled) = cx.check_cancelled() {
                kill(job, Status::Killed);
                return Err(cancelled);
            }
            match exited {
                // A process in the background may write for ever.
                Some(exited) if !has_output || exited.elapsed() > DRAIN_TIMEOUT => {
                    return Ok(false);
                }
                Some(_) => continue,
                None => {}
            }
            if self.exec.timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
                kill(job, Status::TimedOut);
                let killed = Instant::now();
                while killed.elapsed() < DRAIN_TIMEOUT && output.pass_on(Duration::ZERO, &mut emit)
                {
                }
                return Ok(true);
            }
            if !has_output && output.is_closed() {
                job.wait(POLL_INTERVAL, |now| !now.status.is_running());
            }
            if last_asked.elapsed() >= POLL_INTERVAL {
                last_asked = Instant::now();
                ask_waiting();
            }
        }
    }
}

impl Operation for ExecOperation<'_> {
    const TOOL: &'static str = "Bash";
    type Output = Executed;

    fn arguments(&self) -> Value {
        json!({"command": self.exec.script(), "raw": "exec"})
    }

    fn access(&self) -> Vec<Access> {
        let directory = self.exec.directory.iter().cloned().map(Access::Read);
        directory.chain([Access::Command(self.exec.script())]).collect()
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Executed, Reply), Error> {
        let stdin = match &self.exec.stdin {
            ProcessStdin::Content(content) => Stdin::Content(content.clone()),
            ProcessStdin::Open => Stdin::Pipe,
            ProcessStdin::Terminal(TerminalSize { rows, columns }) => {
                Stdin::Terminal { rows: *rows, columns: *columns }
            }
        };
        let prepared = cx.prepare(CommandRequest {
            script: self.exec.script(),
            directory: self.exec.directory.as_ref().map(|path| path.to_string_lossy().into_owned()),
            stdin,
            separate_streams: true,
            variables: Vec::new(),
            carries_state: false,
        })?;
        if cx.dry_run() {
            let notes = vec!["dry run: the command was not run".to_owned()];
            return Ok((Executed { notes, ..Executed::default() }, Reply::new("")));
        }
        let asker = cx.host_asker();
        let (command, streams) = prepared.spawn()?;
        let (mut output, input) = streams.into_io();
        self.exec.control.attach(command.job.clone(), input);
        (self.sink)(ExecEvent::Started);
        let timed_out = std::thread::scope(|scope| {
            let ask_waiting =
                || asker.iter().for_each(|asker: &HostAsker<'_>| asker.ask_waiting(scope));
            self.follow(cx, &command.job, &mut output, &ask_waiting)
        });
        let executed = timed_out.and_then(|timed_out| executed(cx, &command, timed_out));
        keep_reading(output, command.job.clone());
        if let Ok(shell) = cx.shell() {
            shell.forget(command.job.id());
        }
        Ok((executed?, Reply::new("")))
    }
}

/// Reads the output of processes in the background, so that writing does not end them.
fn keep_reading(mut output: CommandOutput, job: Arc<Job>) {
    if job.snapshot().all_exited || output.is_closed() {
        return;
    }
    let read = move || {
        while !output.is_closed() && !job.snapshot().all_exited {
            output.pass_on(READ_ON_INTERVAL, &mut |_, _| {});
        }
    };
    // Without a thread, their output is closed.
    let _ = std::thread::Builder::new().name("toolcrib-output".to_owned()).spawn(read);
}

/// Ends all processes of a command.
fn kill(job: &Job, status: Status) {
    job.end(Ending::Prompt, status);
    job.wait(KILL_TIMEOUT, |now| now.all_exited);
}

/// The result of a command whose shell has exited.
fn executed(cx: &Cx<'_>, command: &RunningCommand, timed_out: bool) -> Result<Executed, Error> {
    let job = &command.job;
    let now: Snapshot = job.wait(KILL_TIMEOUT, |now| !now.status.is_running());
    if let Some(error) = &now.error {
        return Err(job_error(error));
    }
    let (exit_code, signal) = match now.ended.as_ref().map(|ended| ended.exit) {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let refusals = job.refusals();
    let refused = sandbox_refusal_notes::notes(
        &refusals,
        "",
        job.directory(),
        MAX_REFUSAL_LINES,
        (&cx.paths().settings, &cx.command_policy()),
    );
    let mut notes = command.notes.clone();
    notes.extend(LimitNote::of(job, &now, None, "").map(|note| note.text()));
    notes.extend(host_lines(&cx.take_host_notes(job)));
    let change = command.guarded.as_ref().and_then(|guarded| {
        // Background processes may change more files, in later changes.
        let new = guarded.changes.take(job.directory());
        notes.extend(new.warnings.iter().cloned());
        new.ids.last().copied()
    });
    let duration = now.duration;
    // A time limit ends the command by a signal, whatever its shell makes of it.
    let (exit_code, signal) =
        if timed_out { (None, signal.or(Some(15))) } else { (exit_code, signal) };
    Ok(Executed { exit_code, signal, timed_out, duration, change, refused, notes })
}
