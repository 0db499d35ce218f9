//! One command that was started: its status, its output and how it ended.
//!
//! Only the thread of the [`crate::poller`] changes a job; other threads read it and wait for changes. A job
//! goes from pending to running and, once, to a final status. Its processes may outlive its shell, so a job
//! can have ended before all its processes have exited.

use std::io::Write as _;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal};

use crate::command::{Ended, Exit, Stream};
use crate::error::JobError;
use crate::launch::ShimProcess;
use crate::limits::ExceededLimit;
use crate::output_buffer::{KeptOutput, OutputBuffer};
use crate::parse_shell_state::parse_shell_state;
use crate::ports::listening_ports;
use crate::process_tree::{Process, descendants, kill_session, signal_each};
use crate::refusal::{MAX_REFUSALS, Refusal};
use crate::shim_messages::{Ending, ShimMessage};
use crate::terminal_reads::{end_if_waiting_for_keyboard, waits_for_keyboard};

/// A command that was started.
#[derive(Debug)]
pub struct Job {
    ids: JobIds,
    script: Vec<u8>,
    directory: PathBuf,
    created: SystemTime,
    shim_pid: i32,
    state: Mutex<State>,
    changed: Condvar,
}

/// The ids of a job.
#[derive(Debug)]
pub(crate) struct JobIds {
    /// Unique in its session only.
    pub(crate) session: String,
    /// Unique among all commands of the user. It cannot be guessed.
    pub(crate) global: String,
}

/// The status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its shell has not started.
    Pending,
    /// Its shell runs.
    Running,
    /// Its shell exited with 0.
    Completed,
    /// Its shell exited with another code, or a signal ended it.
    Failed,
    /// It was killed.
    Killed,
    /// It was killed because it exceeded its time limit.
    TimedOut,
}

impl Status {
    /// The name of the status in replies.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Killed => "killed",
            Status::TimedOut => "timeout",
        }
    }

    /// Whether its shell has not ended yet.
    pub fn is_running(self) -> bool {
        matches!(self, Status::Pending | Status::Running)
    }
}

/// The state of a job at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The status.
    pub status: Status,
    /// The result of its shell, once it has ended.
    pub ended: Option<Ended>,
    /// The time from its start to its end, or to now.
    pub duration: Duration,
    /// When its shell ended.
    pub finished: Option<SystemTime>,
    /// The number of bytes that it has written.
    pub written: u64,
    /// The range of these bytes that is no longer kept.
    pub gap: Range<u64>,
    /// Bytes that it has written to stderr; `None` if stderr is not stored apart.
    pub errors_written: Option<u64>,
    /// Whether its output is closed, so that no more can come.
    pub closed: bool,
    /// Whether all its processes have exited.
    pub all_exited: bool,
    /// The number of processes that were killed.
    pub killed: u64,
    /// The number of those that got SIGKILL, because there was no time for SIGTERM or it did not end them.
    pub force_killed: u64,
    /// The error that ended the job, if there was one.
    pub error: Option<JobError>,
}

#[derive(Debug)]
struct State {
    status: Status,
    ended: Option<Ended>,
    output: OutputBuffer,
    /// Stderr, if it is stored apart.
    errors: Option<OutputBuffer>,
    began: Instant,
    lasted: Option<Duration>,
    finished: Option<SystemTime>,
    output_closed: bool,
    errors_closed: bool,
    all_exited: bool,
    killed: u64,
    force_killed: u64,
    error: Option<JobError>,
    /// The final status if its shell ends because it was told to.
    ending: Option<Status>,
    control: Option<UnixStream>,
    shim: Option<ShimProcess>,
    /// Our own processes between the shim and the shell.
    intermediate: Vec<Pid>,
    refusals: Vec<Refusal>,
    exceeded: Option<ExceededLimit>,
}

impl Job {
    pub(crate) fn new(
        ids: JobIds,
        script: Vec<u8>,
        directory: PathBuf,
        (shim, control): (ShimProcess, UnixStream),
        (output, errors): (OutputBuffer, Option<OutputBuffer>),
    ) -> Job {
        let shim_pid = shim.pid();
        let state = State {
            status: Status::Pending,
            ended: None,
            output,
            errors_closed: errors.is_none(),
            errors,
            began: Instant::now(),
            lasted: None,
            finished: None,
            output_closed: false,
            all_exited: false,
            killed: 0,
            force_killed: 0,
            error: None,
            ending: None,
            control: Some(control),
            shim: Some(shim),
            intermediate: Vec::new(),
            refusals: Vec::new(),
            exceeded: None,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Job { ids, script, directory, created: SystemTime::now(), shim_pid, state, changed }
    }

    /// The id in its session, such as `sh_1`. Other sessions have their own `sh_1`.
    pub fn id(&self) -> &str {
        &self.ids.session
    }

    /// The id among all commands of this user, as in [`crate::RunningJob`]. It cannot be guessed.
    pub fn global_id(&self) -> &str {
        &self.ids.global
    }

    /// The script.
    pub fn script(&self) -> &[u8] {
        &self.script
    }

    /// The initial working directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// When the job was created.
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// The pid of its shim.
    pub fn shim_pid(&self) -> i32 {
        self.shim_pid
    }

    /// The current state.
    pub fn snapshot(&self) -> Snapshot {
        self.state.lock().snapshot()
    }

    /// Returns at most `max` bytes of output and the offset of the first. That offset is later than `from` if
    /// the bytes at `from` are no longer kept.
    pub fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>) {
        self.state.lock().output.read(from, max)
    }

    /// The number of newlines before an offset. An offset in the gap counts as the end of the gap.
    pub fn newlines_before(&self, offset: u64) -> u64 {
        self.state.lock().output.newlines_before(offset)
    }

    /// What is kept of its output now, if bytes were dropped.
    pub fn kept_output(&self) -> Option<KeptOutput> {
        self.state.lock().output.kept()
    }

    /// Its stderr, if that is stored apart.
    pub fn errors(&self) -> Option<ErrorStream<'_>> {
        self.state.lock().errors.is_some().then_some(ErrorStream(self))
    }

    /// The processes that wait for keyboard input, which never comes: there is no terminal.
    pub fn waiting_for_keyboard(&self) -> Vec<Process> {
        self.processes().into_iter().filter(|process| waits_for_keyboard(process.pid)).collect()
    }

    /// Sends SIGTERM to one of its processes, if it still waits for keyboard input.
    pub fn end_if_waiting_for_keyboard(&self, process: &Process) {
        end_if_waiting_for_keyboard(process.pid);
    }

    /// The running processes: the shell and its descendants.
    pub fn processes(&self) -> Vec<Process> {
        let (all_exited, intermediate) = {
            let state = self.state.lock();
            (state.all_exited, state.intermediate.clone())
        };
        let mut processes = if all_exited { Vec::new() } else { descendants(self.shim_pid) };
        processes.retain(|process| !intermediate.iter().any(|own| own.as_raw_pid() == process.pid));
        processes
    }

    /// The actions that the sandbox has denied so far, without duplicates, in order. One more than
    /// [`crate::MAX_REFUSALS`] means that there were more.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.state.lock().refusals.clone()
    }

    /// The TCP ports that its processes listen on.
    pub fn ports(&self) -> Vec<u16> {
        listening_ports(&self.processes().iter().map(|process| process.pid).collect::<Vec<_>>())
    }

    /// Waits until `wanted` returns true for the state or the timeout passes, and returns the last state. New
    /// output does not wake it, only changes of the status; to wait for output, call it with short timeouts.
    pub fn wait(&self, timeout: Duration, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let until = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            let snapshot = state.snapshot();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || wanted(&snapshot) {
                return snapshot;
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Ends all its processes. `as_status` becomes the status if its shell still runs.
    pub fn end(&self, how: Ending, as_status: Status) {
        let mut state = self.state.lock();
        if state.status.is_running() {
            state.ending = Some(as_status);
        }
        if let Some(control) = &mut state.control {
            // The shim may already have exited.
            let _ = control.write_all(&[how.to_byte()]);
        }
    }

    /// Sends a signal to all its processes.
    pub fn signal(&self, signal: Signal) {
        signal_each(&self.processes(), signal);
    }

    /// Kills all its processes, because they exceeded a limit.
    pub(crate) fn end_by_limit(&self, exceeded: ExceededLimit) {
        let before = self.state.lock().exceeded.replace(exceeded);
        // Otherwise it is being killed already.
        if before.is_none() {
            self.end(Ending::Immediate, Status::Killed);
        }
    }

    /// The limit for which it was killed, if that is why it ended.
    pub fn exceeded_limit(&self) -> Option<ExceededLimit> {
        self.state.lock().exceeded
    }

    /// Appends output. Waiting threads are not woken: a flood of output would wake them thousands of times a
    /// second.
    pub(crate) fn append_output(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.state.lock();
        match (stream, &mut state.errors) {
            (Stream::Errors, Some(errors)) => errors.append(bytes),
            _ => state.output.append(bytes),
        }
    }

    /// Records a denied action.
    pub(crate) fn add_refusal(&self, refusal: Refusal) {
        let mut state = self.state.lock();
        if state.refusals.len() <= MAX_REFUSALS {
            state.refusals.push(refusal);
        }
    }

    /// Marks a stream as complete.
    pub(crate) fn stream_closed(&self, stream: Stream) {
        match stream {
            Stream::Output => self.state.lock().output_closed = true,
            Stream::Errors => self.state.lock().errors_closed = true,
        }
        self.changed.notify_all();
    }

    /// Handles a message of the shim.
    pub(crate) fn handle_message(&self, message: ShimMessage) {
        let mut state = self.state.lock();
        match message {
            ShimMessage::Started { intermediate } => {
                state.intermediate = intermediate.into_iter().filter_map(Pid::from_raw).collect();
                if state.status == Status::Pending {
                    state.status = Status::Running;
                }
            }
            ShimMessage::NotStarted { step, what, errno } => {
                state.finish(Status::Failed);
                state.error = Some(JobError::NotPrepared { step, what, errno });
            }
            ShimMessage::Exited { exit, cpu, peak_bytes, shell_state } => {
                let by_itself = if exit.is_success() { Status::Completed } else { Status::Failed };
                // A shell that exits by itself with success was not killed, even if it was told to end.
                let killed =
                    state.ending.filter(|_| matches!(exit, Exit::Signal(_)) || !exit.is_success());
                state.finish(killed.unwrap_or(by_itself));
                state.ended = Some(Ended {
                    exit,
                    cpu,
                    peak_bytes,
                    shell_state: parse_shell_state(&shell_state).map(Arc::new),
                });
            }
            // Others handle these.
            ShimMessage::SupervisionReady | ShimMessage::Forked { .. } => {}
            ShimMessage::Finished { terminated, force_killed } => {
                state.all_exited = true;
                state.killed = terminated;
                state.force_killed = force_killed;
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The shim has exited, after its last message or because it was killed.
    pub(crate) fn on_shim_exit(&self) {
        // Waits without the lock, so that other threads can read the state.
        let shim = self.state.lock().shim.take();
        if let Some(shim) = shim {
            // It has closed its socket, so it has exited or is about to.
            shim.wait();
        }
        let mut state = self.state.lock();
        state.control = None;
        if state.status.is_running() {
            let ending = state.ending.unwrap_or(Status::Failed);
            state.finish(ending);
            state.error = Some(JobError::ShimLost);
            kill_session(self.shim_pid);
        }
        state.all_exited = true;
        drop(state);
        self.changed.notify_all();
    }
}

/// The stderr of a job that stores it apart.
#[derive(Debug, Clone, Copy)]
pub struct ErrorStream<'a>(&'a Job);

impl ErrorStream<'_> {
    /// Like [`Job::read`].
    pub fn read(self, from: u64, max: usize) -> (u64, Vec<u8>) {
        self.0
            .state
            .lock()
            .errors
            .as_ref()
            .map_or_else(|| (from, Vec::new()), |log| log.read(from, max))
    }

    /// Like [`Job::newlines_before`].
    pub fn newlines_before(self, position: u64) -> u64 {
        self.0.state.lock().errors.as_ref().map_or(0, |log| log.newlines_before(position))
    }
}

impl State {
    fn finish(&mut self, status: Status) {
        self.status = status;
        self.lasted = Some(self.began.elapsed());
        self.finished = Some(SystemTime::now());
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            status: self.status,
            ended: self.ended.clone(),
            duration: self.lasted.unwrap_or_else(|| self.began.elapsed()),
            finished: self.finished,
            written: self.output.written(),
            gap: self.output.gap(),
            errors_written: self.errors.as_ref().map(OutputBuffer::written),
            closed: self.output_closed && self.errors_closed,
            all_exited: self.all_exited,
            killed: self.killed,
            force_killed: self.force_killed,
            error: self.error.clone(),
        }
    }
}
