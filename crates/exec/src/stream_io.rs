//! Reads and writes our ends of the streams of a command, without waiting for ever.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::termios::isatty;

use crate::streams::{Streams, resize_terminal};

const CHUNK_BYTES: usize = 128 << 10;

/// How often a blocked write checks whether to go on.
const WRITE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// `^D`, which a terminal turns into end of file.
const END_OF_TRANSMISSION: u8 = 4;

/// An output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Stdout, and stderr unless that is separate.
    Stdout,
    /// Stderr, if that is separate.
    Stderr,
}

/// The output of a command that runs with [`crate::Jobs::spawn`].
#[derive(Debug)]
pub struct CommandOutput {
    open: Vec<(OutputStream, OwnedFd)>,
    chunk: Vec<u8>,
}

/// The input of a command that runs with [`crate::Jobs::spawn`].
#[derive(Debug)]
pub struct CommandInput(OwnedFd);

impl Streams {
    /// The output, and the input if it is open.
    pub fn into_io(self) -> (CommandOutput, Option<CommandInput>) {
        let stderr = self.stderr.map(|stderr| (OutputStream::Stderr, stderr));
        let open = [(OutputStream::Stdout, self.stdout)].into_iter().chain(stderr).collect();
        let output = CommandOutput { open, chunk: vec![0; CHUNK_BYTES] };
        (output, self.stdin.map(CommandInput))
    }
}

impl CommandOutput {
    /// Whether all streams have ended.
    pub fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// Waits for output, and passes on a part of each stream. Returns whether there was any.
    pub fn pass_on(
        &mut self,
        timeout: Duration,
        emit: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> bool {
        let CommandOutput { open, chunk } = self;
        let streams = open.iter().map(|(_, stream)| PollFd::new(stream, PollFlags::IN));
        let mut waiting: Vec<PollFd<'_>> = streams.collect();
        if waiting.is_empty() || !is_ready(&mut waiting, timeout) {
            return false;
        }
        drop(waiting);
        let mut has_output = false;
        open.retain(|(name, stream)| match read(stream, &mut *chunk) {
            Ok(0) => false,
            Ok(count) => {
                emit(*name, chunk.get(..count).unwrap_or_default());
                has_output = true;
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            // A terminal that no process has open any more gives an error.
            Err(_) => false,
        });
        has_output
    }
}

impl CommandInput {
    /// Writes all bytes. While the command does not read, `goes_on` is asked from time to time. Fails if it returns
    /// false, or if the command has closed its stdin.
    pub fn write(&self, mut bytes: &[u8], goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        while !bytes.is_empty() {
            match write(&self.0, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::AGAIN) if goes_on() => {
                    is_ready(&mut [PollFd::new(&self.0, PollFlags::OUT)], WRITE_POLL_INTERVAL);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The bytes that end the input of a terminal. `None` for a pipe, which is closed instead.
    pub fn end_of_file(&self) -> Option<[u8; 1]> {
        isatty(&self.0).then_some([END_OF_TRANSMISSION])
    }

    /// Sets the size of the terminal. Fails for a pipe.
    pub fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        resize_terminal(&self.0, rows, columns)
    }
}

/// Whether an output, such as stdout, is not a pipe or socket whose other end is closed.
pub fn has_reader(output: impl AsFd) -> bool {
    let output = output.as_fd();
    let mut waiting = [PollFd::new(&output, PollFlags::empty())];
    let is_ready = is_ready(&mut waiting, Duration::ZERO);
    !is_ready || !waiting[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

fn is_ready(waiting: &mut [PollFd<'_>], timeout: Duration) -> bool {
    matches!(poll(waiting, Some(&timespec(timeout))), Ok(ready) if ready > 0)
}

/// A duration for `poll`.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
