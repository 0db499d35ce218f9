//! A command in the view of the system's bubblewrap: that program comes between the keeper and the first
//! process inside, which is ours once more.
//!
//! The two speak on a socket that bubblewrap only hands on. The command's output goes over it as well: else
//! bubblewrap would hold it, and nobody would see when the command lets go.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdout};

use super::super::sandboxed::Attendant;
use super::super::{give_up, shell};
use super::{attend, become_keeper};
use crate::command::Command;
use crate::fd_passing;
use crate::sandbox::Confinement;
use crate::sandbox::bubblewrap::{Inside, Wrapped};
use crate::setup_error::{Failure, plainly};
use crate::wire;

/// The keeper's part.
pub(super) fn keep(
    control: UnixStream,
    command: &Command,
    script: io::Result<OwnedFd>,
    confinement: &Confinement,
) -> ExitCode {
    // Only for whoever lists commands.
    let script = script.and_then(|script| shell::fill(script, &command.script));
    match start(&control, command, confinement) {
        Ok((first, socket, words)) => {
            let attendant = Attendant::new(control, first, socket, script.ok());
            attend(attendant.of_others(words), command)
        }
        Err(failure) => give_up(&control, failure),
    }
}

/// How often it is tried: something that was to be hidden may go away meanwhile, and come again.
const TRIES: usize = 8;

/// Starts bubblewrap until our program is there behind it, or it is clear that it never will be.
fn start(
    control: &UnixStream,
    command: &Command,
    confinement: &Confinement,
) -> Result<Started, Failure> {
    become_keeper()?;
    for _ in 1..TRIES {
        match try_to_start(command, confinement) {
            Ok(started) if is_to_be_attended(control, &started.1) => return Ok(started),
            // It has let go of the socket: it has ended, or is about to.
            Ok((pid, ..)) => drop(waitpid(Some(pid), WaitOptions::empty())),
            Err(failure) if failure.error.kind() == io::ErrorKind::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    try_to_start(command, confinement)
}

/// Bubblewrap's number, the socket to the program behind it, and where bubblewrap complains.
type Started = (Pid, UnixStream, OwnedFd);

/// Waits until something is said inside or by the runtime; not so, if nobody is left inside to say it.
fn is_to_be_attended(control: &UnixStream, socket: &UnixStream) -> bool {
    let mut either = [PollFd::new(control, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
    let waited = retry_on_intr(|| poll(&mut either, None));
    if waited.is_err() || either[1].revents().is_empty() {
        return true;
    }
    let said = retry_on_intr(|| recv(socket, &mut [0_u8], RecvFlags::PEEK));
    said.is_ok_and(|(_, length)| length > 0)
}

/// Starts bubblewrap, with our own program behind it.
fn try_to_start(command: &Command, confinement: &Confinement) -> Result<Started, Failure> {
    // The same words as this process was started with: by them our program knows what it is to be.
    let arguments = std::env::args_os().skip(1);
    let (mut bubblewrap, handed, inside) =
        Wrapped::new(&confinement.sandbox)?.command(arguments)?;
    let (heard, said) = plainly("make a socket", UnixStream::pair())?;
    let words = plainly("hold what is complained of", shell::filled("words", b""))?;
    let complaints = plainly("hold what is complained of", words.try_clone())?;
    bubblewrap.env_clear().stdin(OwnedFd::from(said)).stdout(Stdio::null()).stderr(complaints);
    let first = plainly("start bubblewrap", bubblewrap.spawn())?;
    // The other end of the socket, and all that was to be inherited.
    drop((bubblewrap, handed));
    let request = wire::encode_be_first(command, confinement, &inside);
    // If it has ended already, what it complained of is more than that nobody listens.
    let _ = fd_passing::send(&heard, &request, &[io::stdout().as_fd(), io::stderr().as_fd()]);
    Ok((Pid::from_child(&first), heard, words))
}

/// The part of the first process inside.
pub(in super::super) fn be_first(
    command: &Command,
    script: io::Result<OwnedFd>,
    (confinement, inside): (&Confinement, &Inside),
    streams: Vec<OwnedFd>,
    said: &UnixStream,
) -> ExitCode {
    let enter = || {
        let [stdout, stderr] = streams.as_slice() else {
            let missing = Err(io::Error::from_raw_os_error(libc::EBADF));
            return plainly("find where to write", missing);
        };
        plainly("write there", dup2_stdout(stdout))?;
        plainly("write there", dup2_stderr(stderr))?;
        confinement.enter_wrapped(inside)
    };
    super::be_first(command, script, enter, said)
}
