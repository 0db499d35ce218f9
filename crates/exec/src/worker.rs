//! A child with limits that works on bytes: the parent's side is here, the child's is [`confine()`].

mod confine;
mod conversation;
mod error;
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

pub use confine::{NotConfined, confine};
pub use conversation::Conversation;
pub use error::WorkerError;
pub use limits::WorkerLimits;
pub use serve::{serve, serve_conversation};
pub use slots::{WorkerPlace, WorkerPlaces};

use self::pipes::{AtEnd, Pipes, Progress};

/// How long a wish to cancel may go unseen.
const GLANCE: Duration = Duration::from_millis(10);

/// A program that reads its stdin to the end, writes its answer to stdout and says on stderr why there
/// is none. It should call [`confine()`] before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The program, by its full path: there is no `PATH` to look it up in.
    pub program: PathBuf,
    /// Its arguments, without the name.
    pub arguments: Vec<OsString>,
    /// What it may use up.
    pub limits: WorkerLimits,
}

impl Worker {
    /// Starts it, gives it the input, and waits for the answer. However this ends, the child has ended
    /// and is reaped; so has what it may have started, unless that left its process group.
    ///
    /// The child has no environment and the root for its directory, and its limits hold before it gets
    /// the first byte of the input.
    pub fn run(&self, input: &[u8], cancelled: &dyn Fn() -> bool) -> Result<Vec<u8>, WorkerError> {
        let started = Instant::now();
        let mut running = Running::start(self, AtEnd::Close)?;
        let watched = running.watch(&self.limits, input, started, cancelled);
        let (output, complaint) = running.pipes.take();
        let status = running.end()?;
        watched?;
        match error::of_ending(status, &complaint) {
            None => Ok(output),
            Some(error) => Err(error),
        }
    }
}

/// A child that has been started; it does not outlive this.
#[derive(Debug)]
struct Running {
    child: Child,
    /// Names the process for sure, where its number might be given to another.
    handle: OwnedFd,
    pid: Pid,
    pipes: Pipes,
}

impl Running {
    fn start(worker: &Worker, at_end: AtEnd) -> Result<Running, WorkerError> {
        let mut command = Command::new(&worker.program);
        command.args(&worker.arguments).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(WorkerError::NotStarted)?;
        let pid = Pid::from_child(&child);
        let prepared = limits::impose(pid, &worker.limits).and_then(|()| {
            Ok((pidfd_open(pid, PidfdFlags::empty())?, Pipes::of(&mut child, at_end)?))
        });
        match prepared {
            Ok((handle, pipes)) => Ok(Running { child, handle, pid, pipes }),
            Err(error) => {
                // Already gone is as good as killed.
                let _ = child.kill();
                let _ = child.wait();
                Err(WorkerError::NotStarted(error.into()))
            }
        }
    }

    /// Until it has ended by itself; an error means that it has not.
    fn watch(
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
            let (max_output, patience) = (limits.output_bytes, left.min(GLANCE));
            let progress = self.pump(&mut unwritten, max_output, patience)?;
            if progress == Progress::Ended {
                return Ok(());
            }
        }
    }

    /// Moves what can be moved, or waits for so long.
    fn pump(
        &mut self,
        unwritten: &mut &[u8],
        max_output: usize,
        patience: Duration,
    ) -> Result<Progress, WorkerError> {
        self.pipes.pump(&self.handle, unwritten, max_output, patience)
    }

    /// What it has answered since this was last asked for.
    fn take_answer(&mut self) -> Vec<u8> {
        self.pipes.take_answer()
    }

    /// Whether it has ended by itself, and then what it still had to say is heard.
    fn has_ended(&mut self) -> bool {
        let ended = self.pump(&mut [].as_slice(), usize::MAX, Duration::ZERO);
        ended.is_ok_and(|progress| progress == Progress::Ended)
    }

    /// Kills what is left of it, and reaps it.
    fn end(mut self) -> Result<std::process::ExitStatus, WorkerError> {
        // Before it is waited for, while the group's number cannot be anybody else's.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.child.wait().map_err(WorkerError::Lost)
    }
}
