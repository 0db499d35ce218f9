//! Writing a child's input while reading what it writes, in one thread: whoever waits for one pipe only
//! is stuck as soon as the child waits for the other.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::error::WorkerError;

/// Of what a child says on stderr: a panic's message fits, a flood does not.
const MAX_COMPLAINT: usize = 4 << 10;

/// The size of a pipe, as it is by default.
const CHUNK: usize = 64 << 10;

/// The three pipes of a child, as long as they are open, and what came out of two of them.
#[derive(Debug)]
pub(super) struct Pipes {
    at_end: AtEnd,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    complaint: Option<ChildStderr>,
    answered: Vec<u8>,
    complained: Vec<u8>,
}

/// What becomes of the input's pipe when everything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtEnd {
    /// It is closed: that is how the child learns that this was all.
    Close,
    /// More will come.
    StayOpen,
}

/// What a child is after some of its bytes went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Running,
    Ended,
}

/// What became of one pipe.
enum Flow {
    /// Nothing more for now.
    Waiting,
    /// Nothing more at all.
    Closed,
    /// More came than may.
    Overflow,
}

impl Pipes {
    pub(super) fn of(child: &mut Child, at_end: AtEnd) -> Result<Pipes, Errno> {
        let pipes = Pipes {
            at_end,
            input: child.stdin.take(),
            output: child.stdout.take(),
            complaint: child.stderr.take(),
            answered: Vec::new(),
            complained: Vec::new(),
        };
        pipes.input.as_ref().map_or(Ok(()), do_not_wait)?;
        pipes.output.as_ref().map_or(Ok(()), do_not_wait)?;
        pipes.complaint.as_ref().map_or(Ok(()), do_not_wait)?;
        Ok(pipes)
    }

    /// Waits until something can be moved, or the process ends, or for so long; and moves it.
    pub(super) fn pump(
        &mut self,
        process: &OwnedFd,
        unwritten: &mut &[u8],
        max_output: usize,
        patience: Duration,
    ) -> Result<Progress, WorkerError> {
        let has_more = !unwritten.is_empty() || self.at_end == AtEnd::Close;
        let ended = self.wait(process, has_more, patience)?;
        if let Some(input) = self.input.as_mut().filter(|_| has_more)
            && let Flow::Closed = write(input, unwritten).map_err(WorkerError::Lost)?
            && (self.at_end == AtEnd::Close || !unwritten.is_empty())
        {
            self.input = None;
        }
        if let Some(output) = &mut self.output {
            match read(output, &mut self.answered, max_output).map_err(WorkerError::Lost)? {
                Flow::Waiting => {}
                Flow::Closed => self.output = None,
                Flow::Overflow => return Err(WorkerError::TooMuchOutput),
            }
        }
        if let Some(complaint) = &mut self.complaint {
            match read(complaint, &mut self.complained, MAX_COMPLAINT).map_err(WorkerError::Lost)? {
                // Whoever complains at length is let talk: a closed pipe would end it.
                Flow::Waiting | Flow::Overflow => {}
                Flow::Closed => self.complaint = None,
            }
        }
        Ok(if ended { Progress::Ended } else { Progress::Running })
    }

    /// What it answered, and what it complained about.
    pub(super) fn take(&mut self) -> (Vec<u8>, Vec<u8>) {
        (std::mem::take(&mut self.answered), std::mem::take(&mut self.complained))
    }

    /// What it answered since this was last asked for.
    pub(super) fn take_answer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answered)
    }

    /// Whether the process has ended: then everything it wrote is in the pipes.
    fn wait(
        &self,
        process: &OwnedFd,
        has_more: bool,
        patience: Duration,
    ) -> Result<bool, WorkerError> {
        let mut waited_for = vec![PollFd::new(process, PollFlags::IN)];
        let input = self.input.as_ref().filter(|_| has_more);
        waited_for.extend(input.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        waited_for.extend(self.output.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waited_for.extend(self.complaint.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        match poll(&mut waited_for, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(WorkerError::Lost(error.into())),
        }
        Ok(waited_for.first().is_some_and(|process| !process.revents().is_empty()))
    }
}

fn do_not_wait(pipe: &impl AsFd) -> Result<(), Errno> {
    fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)
}

/// Writes what fits. An empty rest may close the pipe.
fn write(pipe: &mut impl Write, rest: &mut &[u8]) -> io::Result<Flow> {
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(count) => *rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Flow::Waiting),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // It does not want the rest; what it answers counts.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Flow::Closed),
            Err(error) => return Err(error),
        }
    }
    Ok(Flow::Closed)
}

/// Reads what is there.
fn read(pipe: &mut impl Read, into: &mut Vec<u8>, max: usize) -> io::Result<Flow> {
    let mut chunk = [0; CHUNK];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return Ok(Flow::Closed),
            Ok(count) => {
                let room = max - into.len();
                into.extend(chunk.iter().take(count.min(room)));
                if count > room {
                    return Ok(Flow::Overflow);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Flow::Waiting),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
