//! A child process with limits that works on bytes. The parent's side is here, the child's is [`confine()`].

mod confine;
mod conversation;
mod error;
mod idle_time;
mod limits;
mod pipes;
mod serve;
mod slots;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

pub use confine::{ConfineError, confine};
pub use conversation::Conversation;
pub use error::WorkerError;
pub use limits::WorkerLimits;
pub use serve::{serve, serve_conversation};
pub use slots::{WorkerSlot, WorkerSlots};

use self::pipes::{AfterInput, Pipes, Progress};

/// How often to check for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A program that reads stdin to the end, and writes its answer to stdout or an error message to stderr. It
/// should call [`confine()`] before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The absolute path of the program: there is no `PATH`.
    pub program: PathBuf,
    /// Its arguments, without the program name.
    pub arguments: Vec<OsString>,
    /// Its resource limits.
    pub limits: WorkerLimits,
}

impl Worker {
    /// Starts it, sends the input and returns the answer. When this returns, the child has exited and is
    /// reaped, and so are its own children, unless they left its process group.
    ///
    /// The child has no environment, its directory is `/`, and its limits apply before it gets the first byte
    /// of input.
    pub fn run(&self, input: &[u8], cancelled: &dyn Fn() -> bool) -> Result<Vec<u8>, WorkerError> {
        let started = Instant::now();
        let mut running = RunningWorker::start(self, AfterInput::Close)?;
        let pumped = running.pump_until_exit(&self.limits, input, started, cancelled);
        let (output, stderr) = running.pipes.take();
        let status = running.end()?;
        pumped?;
        match error::from_exit_status(status, &stderr) {
            None => Ok(output),
            Some(error) => Err(error),
        }
    }
}

/// A started child. Dropping this ends it.
#[derive(Debug)]
struct RunningWorker {
    child: Child,
    /// Identifies the process even if its pid is reused.
    handle: OwnedFd,
    pid: Pid,
    pipes: Pipes,
}

impl RunningWorker {
    fn start(worker: &Worker, after_input: AfterInput) -> Result<RunningWorker, WorkerError> {
        let mut command = Command::new(&worker.program);
        command.args(&worker.arguments).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(WorkerError::NotStarted)?;
        let pid = Pid::from_child(&child);
        let prepared = limits::apply(pid, &worker.limits).and_then(|()| {
            Ok((pidfd_open(pid, PidfdFlags::empty())?, Pipes::of(&mut child, after_input)?))
        });
        match prepared {
            Ok((handle, pipes)) => Ok(RunningWorker { child, handle, pid, pipes }),
            Err(error) => {
                // It may already have exited.
                let _ = child.kill();
                let _ = child.wait();
                Err(WorkerError::NotStarted(error.into()))
            }
        }
    }

    /// Returns when the child has exited by itself. After an error it may still run.
    fn pump_until_exit(
        &mut self,
        limits: &WorkerLimits,
        input: &[u8],
        started: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), WorkerError> {
        let mut unwritten = input;
        loop {
            if cancelled() {
                return Err(WorkerError::Cancelled);
            }
            let left = limits.wall.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(WorkerError::TimedOut);
            }
            let (max_output, timeout) = (limits.output_bytes, left.min(POLL_INTERVAL));
            let progress = self.pump(&mut unwritten, max_output, timeout)?;
            if progress == Progress::Ended {
                return Ok(());
            }
        }
    }

    /// Moves bytes, or waits for at most `timeout`.
    fn pump(
        &mut self,
        unwritten: &mut &[u8],
        max_output: usize,
        timeout: Duration,
    ) -> Result<Progress, WorkerError> {
        self.pipes.pump(&self.handle, unwritten, max_output, timeout)
    }

    /// The output since the last call.
    fn take_output(&mut self) -> Vec<u8> {
        self.pipes.take_stdout()
    }

    /// Whether it has exited by itself. Its remaining output is read then.
    fn has_ended(&mut self) -> bool {
        let ended = self.pump(&mut [].as_slice(), usize::MAX, Duration::ZERO);
        ended.is_ok_and(|progress| progress == Progress::Ended)
    }

    /// Kills the rest of its process group, and reaps it.
    fn end(mut self) -> Result<std::process::ExitStatus, WorkerError> {
        // Before it is reaped, while the number of the group cannot be reused.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.child.wait().map_err(WorkerError::Lost)
    }
}
