//! One command that was started: what it is doing, what it wrote, how it ended.
//!
//! The thread of the [`crate::poller`] is the only one that changes a job; everybody else looks at it and
//! waits for it to change. A job goes from pending to running, and from there, once, to how it ended; its
//! processes may outlive its shell, so *ended* and *over* are two things.

use std::io::Write as _;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Pid;

use crate::command::{Ended, Exit, Stream};
use crate::error::JobError;
use crate::output_buffer::Log;
use crate::ports::listening;
use crate::refusal::{REFUSALS_TOLD, Refusal};
use crate::shell_state::read_left;
use crate::shim::{Process, descendants, kill_session};
use crate::shim_pool::EndSignal;
use crate::terminal_reads::{end_if_it_waits_for_keys, waits_for_keys};
use crate::wire::{Ending, ShimMessage};

/// A command that was started.
#[derive(Debug)]
pub struct Job {
    ids: JobIds,
    script: Vec<u8>,
    directory: PathBuf,
    created: SystemTime,
    keeper: i32,
    /// Who hears of its end.
    over: EndSignal,
    state: Mutex<State>,
    changed: Condvar,
}

/// The names of a job.
#[derive(Debug)]
pub(crate) struct JobIds {
    /// In its session: short, and of no use outside it.
    pub(crate) session: String,
    /// Among all commands of the user; it cannot be guessed.
    pub(crate) keeper: String,
}

/// What a job is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its shell has not begun.
    Pending,
    /// Its shell runs.
    Running,
    /// Its shell ended with 0.
    Completed,
    /// Its shell ended otherwise.
    Failed,
    /// It was killed.
    Killed,
    /// It was killed because it took too long.
    TimedOut,
}

impl Status {
    /// Its name in replies.
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

    /// Whether its shell is still to end.
    pub fn is_running(self) -> bool {
        matches!(self, Status::Pending | Status::Running)
    }
}

/// A job at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// What it is doing.
    pub status: Status,
    /// How its shell ended, once it has.
    pub ended: Option<Ended>,
    /// From its start to its end, or to now.
    pub duration: Duration,
    /// When its shell ended.
    pub finished: Option<SystemTime>,
    /// Bytes that it has written.
    pub written: u64,
    /// Those among them that are not kept any more.
    pub gap: Range<u64>,
    /// Bytes that it has written to stderr; `None` if stderr is not stored apart.
    pub errors_written: Option<u64>,
    /// Nothing more will be written.
    pub closed: bool,
    /// No process of it is left.
    pub over: bool,
    /// How many processes were ended by force.
    pub killed: u64,
    /// Why there is no more, if it broke.
    pub broken: Option<JobError>,
}

#[derive(Debug)]
struct State {
    status: Status,
    ended: Option<Ended>,
    log: Log,
    /// Stderr, if it is stored apart.
    errors: Option<Log>,
    began: Instant,
    lasted: Option<Duration>,
    finished: Option<SystemTime>,
    output_closed: bool,
    errors_closed: bool,
    over: bool,
    killed: u64,
    broken: Option<JobError>,
    /// What it is to be called when its shell ends because we made it.
    ending: Option<Status>,
    control: Option<UnixStream>,
    child: Option<Child>,
    /// The processes of ours between the keeper and the shell.
    between: Vec<Pid>,
    refusals: Vec<Refusal>,
}

impl Job {
    pub(crate) fn new(
        ids: JobIds,
        script: Vec<u8>,
        directory: PathBuf,
        (child, control): (Child, UnixStream),
        (log, errors): (Log, Option<Log>),
        over: EndSignal,
    ) -> Job {
        let keeper = i32::try_from(child.id()).unwrap_or(i32::MAX);
        let state = State {
            status: Status::Pending,
            ended: None,
            log,
            errors_closed: errors.is_none(),
            errors,
            began: Instant::now(),
            lasted: None,
            finished: None,
            output_closed: false,
            over: false,
            killed: 0,
            broken: None,
            ending: None,
            control: Some(control),
            child: Some(child),
            between: Vec::new(),
            refusals: Vec::new(),
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Job { ids, script, directory, created: SystemTime::now(), keeper, over, state, changed }
    }

    /// Its id in its session: `sh_1` is the first. Another session has its own `sh_1`.
    pub fn id(&self) -> &str {
        &self.ids.session
    }

    /// Its id among all commands of this user, as [`crate::Kept`] has it; it cannot be guessed.
    pub fn keeper_id(&self) -> &str {
        &self.ids.keeper
    }

    /// What it runs.
    pub fn script(&self) -> &[u8] {
        &self.script
    }

    /// Where it began.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// When it was made.
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// The number of the process that keeps it.
    pub fn keeper(&self) -> i32 {
        self.keeper
    }

    /// How it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    /// Bytes that it wrote, from `from` on, at most so many; and where they begin, which is later where
    /// those at `from` are not kept.
    pub fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>) {
        self.lock().log.read(from, max)
    }

    /// How many line ends it wrote before a place; before the end of the gap, if it is in the gap.
    pub fn newlines_before(&self, place: u64) -> u64 {
        self.lock().log.newlines_before(place)
    }

    /// Its stderr, if that is stored apart.
    pub fn errors(&self) -> Option<ErrorStream<'_>> {
        self.lock().errors.is_some().then_some(ErrorStream(self))
    }

    /// The processes of it that wait for keys, which never come: there is no terminal.
    pub fn waiting_for_keys(&self) -> Vec<Process> {
        self.processes().into_iter().filter(|process| waits_for_keys(process.pid)).collect()
    }

    /// Tells one of its processes to end, if it still waits for keys.
    pub fn end_waiting_for_keys(&self, process: &Process) {
        end_if_it_waits_for_keys(process.pid);
    }

    /// The processes of it that run: what its shell started, and the shell.
    pub fn processes(&self) -> Vec<Process> {
        let (over, between) = {
            let state = self.lock();
            (state.over, state.between.clone())
        };
        let mut processes = if over { Vec::new() } else { descendants(self.keeper) };
        processes.retain(|process| !between.iter().any(|own| own.as_raw_pid() == process.pid));
        processes
    }

    /// What its sandbox has refused so far, each once, in the order in which it was tried. One more than
    /// [`crate::REFUSALS_TOLD`] means that there were more.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.lock().refusals.clone()
    }

    /// The TCP ports that its processes listen on.
    pub fn ports(&self) -> Vec<u16> {
        listening(&self.processes().iter().map(|process| process.pid).collect::<Vec<_>>())
    }

    /// Waits until it is as wanted, or for so long; answers how it is then. It is looked at whenever its state
    /// changes, not whenever it writes: who waits for output waits for a little at a time.
    pub fn wait(&self, patience: Duration, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            let snapshot = state.snapshot();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || wanted(&snapshot) {
                return snapshot;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has all its processes ended. `as_status` is what it is called if its shell still ran.
    pub fn end(&self, how: Ending, as_status: Status) {
        let mut state = self.lock();
        if state.status.is_running() {
            state.ending = Some(as_status);
        }
        if let Some(control) = &mut state.control {
            // A keeper that is gone needs no word.
            let _ = control.write_all(&[how.word()]);
        }
    }

    /// More output came. Nobody is woken for it: a flood would wake whoever waits for the end thousands of
    /// times a second.
    pub(crate) fn wrote(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.lock();
        match (stream, &mut state.errors) {
            (Stream::Errors, Some(errors)) => errors.append(bytes),
            _ => state.log.append(bytes),
        }
    }

    /// Its sandbox refused something.
    pub(crate) fn refused(&self, refusal: Refusal) {
        let mut state = self.lock();
        if state.refusals.len() <= REFUSALS_TOLD {
            state.refusals.push(refusal);
        }
    }

    /// No more will come.
    pub(crate) fn closed(&self, stream: Stream) {
        match stream {
            Stream::Output => self.lock().output_closed = true,
            Stream::Errors => self.lock().errors_closed = true,
        }
        self.changed.notify_all();
    }

    /// The keeper said something.
    pub(crate) fn heard(&self, notice: ShimMessage) {
        let mut state = self.lock();
        match notice {
            ShimMessage::Started { between } => {
                state.between = between;
                if state.status == Status::Pending {
                    state.status = Status::Running;
                }
            }
            ShimMessage::NotStarted { step, what, errno } => {
                state.finish(Status::Failed);
                state.broken = Some(JobError::NotPrepared { step, what, errno });
            }
            ShimMessage::Exited { exit, cpu, peak_bytes, left } => {
                let by_itself = if exit.is_success() { Status::Completed } else { Status::Failed };
                // Whoever ends by itself while it is told to is not killed.
                let killed =
                    state.ending.filter(|_| matches!(exit, Exit::Signal(_)) || !exit.is_success());
                state.finish(killed.unwrap_or(by_itself));
                state.ended = Some(Ended { exit, cpu, peak_bytes, left: read_left(&left) });
            }
            // The poller has begun to supervise it.
            ShimMessage::Supervised => {}
            ShimMessage::Over { ended } => {
                state.over = true;
                state.killed = ended;
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The keeper is gone: after its last word, or killed.
    pub(crate) fn keeper_gone(&self) {
        // Not while others are kept from looking: that it is over was said before.
        let child = self.lock().child.take();
        if let Some(mut child) = child {
            // It has closed its socket, so it has ended or is about to.
            let _ = child.wait();
        }
        let mut state = self.lock();
        state.control = None;
        if state.status.is_running() {
            let ending = state.ending.unwrap_or(Status::Failed);
            state.finish(ending);
            state.broken = Some(JobError::KeeperLost);
            kill_session(self.keeper);
        }
        state.over = true;
        drop(state);
        self.changed.notify_all();
        self.over.tell();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stderr of a job that stores it apart.
#[derive(Debug, Clone, Copy)]
pub struct ErrorStream<'a>(&'a Job);

impl ErrorStream<'_> {
    /// Like [`Job::read`].
    pub fn read(self, from: u64, max: usize) -> (u64, Vec<u8>) {
        self.0.lock().errors.as_ref().map_or_else(|| (from, Vec::new()), |log| log.read(from, max))
    }

    /// Like [`Job::newlines_before`].
    pub fn newlines_before(self, position: u64) -> u64 {
        self.0.lock().errors.as_ref().map_or(0, |log| log.newlines_before(position))
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
            written: self.log.written(),
            gap: self.log.gap(),
            errors_written: self.errors.as_ref().map(Log::written),
            closed: self.output_closed && self.errors_closed,
            over: self.over,
            killed: self.killed,
            broken: self.broken.clone(),
        }
    }
}
