//! The standard streams of a command: pipes or a terminal, with one end here and the other in the command.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::{Command, Stdin};

/// Larger than the default of 64 KiB: a flood of output needs fewer wake-ups. A smaller pipe works, too.
const PIPE_BYTES: usize = 256 << 10;

/// Our ends of the streams of a command. They are non-blocking.
#[derive(Debug)]
pub struct Streams {
    /// The write end of stdin, if it is a pipe or a terminal.
    pub stdin: Option<OwnedFd>,
    /// The read end of stdout, and of stderr unless that is separate.
    pub stdout: OwnedFd,
    /// The read end of stderr, if that is separate.
    pub stderr: Option<OwnedFd>,
}

/// The command's ends of its streams.
#[derive(Debug)]
pub(crate) struct CommandStreams {
    /// `None` if stdin is passed as content.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Streams {
    /// Makes the streams that a command needs.
    pub(crate) fn make(command: &Command) -> io::Result<(Streams, CommandStreams)> {
        if let Stdin::Terminal { rows, columns } = command.stdin {
            return terminal(rows, columns);
        }
        let (stdin, stdin_inside) = match command.stdin {
            Stdin::Pipe => {
                let (inside, written) = pipe_with(PipeFlags::CLOEXEC)?;
                fcntl_setfl(&written, OFlags::NONBLOCK)?;
                (Some(written), Some(inside))
            }
            _ => (None, None),
        };
        let (output, stdout) = output_pipe()?;
        let (errors, stderr) = if command.separate_streams {
            let (errors, stderr) = output_pipe()?;
            (Some(errors), stderr)
        } else {
            (None, stdout.try_clone()?)
        };
        let inside = CommandStreams { stdin: stdin_inside, stdout, stderr };
        Ok((Streams { stdin, stdout: output, stderr: errors }, inside))
    }
}

/// Sets the size of the terminal with this stream.
pub(crate) fn resize_terminal(stream: impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(stream, size)?)
}

impl CommandStreams {
    /// The descriptors in the order of [`ReceivedStreams::take`].
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        [Some(&self.stdout), Some(&self.stderr), self.stdin.as_ref()]
            .into_iter()
            .flatten()
            .map(OwnedFd::as_fd)
            .collect()
    }
}

/// The streams of a command as its shim receives them.
#[derive(Debug)]
pub(crate) struct ReceivedStreams {
    /// `None` if stdin is passed as content.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl ReceivedStreams {
    /// Takes the streams of a command from the descriptors of a request. `None` if they are missing.
    pub(crate) fn take(
        command: &Command,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Option<ReceivedStreams> {
        let (stdout, stderr) = (descriptors.next()?, descriptors.next()?);
        let stdin = match command.stdin {
            Stdin::Content(_) => None,
            Stdin::Pipe | Stdin::Terminal { .. } => Some(descriptors.next()?),
        };
        Some(ReceivedStreams { stdin, stdout, stderr })
    }
}

/// A pipe for the output of a command. The read end is non-blocking.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (output, written) = pipe_with(PipeFlags::CLOEXEC)?;
    let _ = fcntl_setpipe_size(&output, PIPE_BYTES);
    fcntl_setfl(&output, OFlags::NONBLOCK)?;
    Ok((output, written))
}

/// A new terminal.
fn terminal(rows: u16, columns: u16) -> io::Result<(Streams, CommandStreams)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = openpt(flags)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    resize_terminal(&controller, rows, columns)?;
    let stdout = ioctl_tiocgptpeer(&controller, flags)?;
    let (stderr, stdin_inside) = (stdout.try_clone()?, stdout.try_clone()?);
    fcntl_setfl(&controller, OFlags::NONBLOCK)?;
    let stdin = controller.try_clone()?;
    let inside = CommandStreams { stdin: Some(stdin_inside), stdout, stderr };
    Ok((Streams { stdin: Some(stdin), stdout: controller, stderr: None }, inside))
}
