//! Writes a child's input and reads its output on one thread. Waiting for a single pipe would deadlock as
//! soon as the child waits for the other.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::error::WorkerError;

/// Bytes of stderr that are kept. A panic message fits, a flood does not.
const MAX_STDERR_BYTES: usize = 4 << 10;

/// The default capacity of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

/// The open pipes of a child, and the bytes that were read from them.
#[derive(Debug)]
pub(super) struct Pipes {
    after_input: AfterInput,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    stdout_bytes: Vec<u8>,
    stderr_bytes: Vec<u8>,
}

/// What to do with the stdin pipe when the input is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterInput {
    /// Close it, which tells the child that the input is complete.
    Close,
    /// Keep it open for more input.
    StayOpen,
}

/// Whether the child still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Running,
    Ended,
}

/// The state of a pipe after a transfer.
enum PipeState {
    /// It would block.
    WouldBlock,
    /// It is closed.
    Closed,
    /// The limit is exceeded.
    Overflow,
}

impl Pipes {
    pub(super) fn of(child: &mut Child, after_input: AfterInput) -> Result<Pipes, Errno> {
        let pipes = Pipes {
            after_input,
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            stdout_bytes: Vec::new(),
            stderr_bytes: Vec::new(),
        };
        pipes.stdin.as_ref().map_or(Ok(()), set_nonblocking)?;
        pipes.stdout.as_ref().map_or(Ok(()), set_nonblocking)?;
        pipes.stderr.as_ref().map_or(Ok(()), set_nonblocking)?;
        Ok(pipes)
    }

    /// Waits until bytes can be moved, the process exits or the timeout passes. Then moves bytes.
    pub(super) fn pump(
        &mut self,
        process: &OwnedFd,
        unwritten: &mut &[u8],
        max_output: usize,
        timeout: Duration,
    ) -> Result<Progress, WorkerError> {
        let has_more = !unwritten.is_empty() || self.after_input == AfterInput::Close;
        let ended = self.wait(process, has_more, timeout)?;
        if let Some(stdin) = self.stdin.as_mut().filter(|_| has_more)
            && let PipeState::Closed = write(stdin, unwritten).map_err(WorkerError::Lost)?
            && (self.after_input == AfterInput::Close || !unwritten.is_empty())
        {
            self.stdin = None;
        }
        if let Some(stdout) = &mut self.stdout {
            match read(stdout, &mut self.stdout_bytes, max_output).map_err(WorkerError::Lost)? {
                PipeState::WouldBlock => {}
                PipeState::Closed => self.stdout = None,
                PipeState::Overflow => return Err(WorkerError::TooMuchOutput),
            }
        }
        if let Some(stderr) = &mut self.stderr {
            match read(stderr, &mut self.stderr_bytes, MAX_STDERR_BYTES)
                .map_err(WorkerError::Lost)?
            {
                // Excess is discarded, and the pipe stays open: a closed pipe would end the child.
                PipeState::WouldBlock | PipeState::Overflow => {}
                PipeState::Closed => self.stderr = None,
            }
        }
        Ok(if ended { Progress::Ended } else { Progress::Running })
    }

    /// Takes the bytes of stdout and stderr.
    pub(super) fn take(&mut self) -> (Vec<u8>, Vec<u8>) {
        (std::mem::take(&mut self.stdout_bytes), std::mem::take(&mut self.stderr_bytes))
    }

    /// Takes the bytes of stdout since the last call.
    pub(super) fn take_stdout(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.stdout_bytes)
    }

    /// Waits. Returns whether the process has exited: then all its output is in the pipes.
    fn wait(
        &self,
        process: &OwnedFd,
        has_more: bool,
        timeout: Duration,
    ) -> Result<bool, WorkerError> {
        let mut waited_for = vec![PollFd::new(process, PollFlags::IN)];
        let stdin = self.stdin.as_ref().filter(|_| has_more);
        waited_for.extend(stdin.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        waited_for.extend(self.stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waited_for.extend(self.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut waited_for, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(WorkerError::Lost(error.into())),
        }
        Ok(waited_for.first().is_some_and(|process| !process.revents().is_empty()))
    }
}

fn set_nonblocking(pipe: &impl AsFd) -> Result<(), Errno> {
    fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)
}

/// Writes as much as possible. Returns `Closed` if nothing is left, or if the child closed the pipe.
fn write(pipe: &mut impl Write, rest: &mut &[u8]) -> io::Result<PipeState> {
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(count) => *rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Ok(PipeState::WouldBlock);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The child does not read the rest. Its answer counts.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(PipeState::Closed),
            Err(error) => return Err(error),
        }
    }
    Ok(PipeState::Closed)
}

/// Reads as much as possible.
fn read(pipe: &mut impl Read, into: &mut Vec<u8>, max: usize) -> io::Result<PipeState> {
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return Ok(PipeState::Closed),
            Ok(count) => {
                let room = max - into.len();
                into.extend(chunk.iter().take(count.min(room)));
                if count > room {
                    return Ok(PipeState::Overflow);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Ok(PipeState::WouldBlock);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
