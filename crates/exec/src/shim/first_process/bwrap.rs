//! A command in a sandbox of the system's bubblewrap: bubblewrap runs between the shim and the first process
//! inside, which is this program again.
//!
//! The two communicate on a socket that bubblewrap only passes on. The command's output goes over it as a
//! descriptor: otherwise bubblewrap would hold the output open, and its end would not be noticed.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::super::report_failure;
use super::super::sandbox_monitor::SandboxMonitor;
use super::super::shell::{self, ShellCommand};
use super::{become_subreaper, run_monitor};
use crate::command::Command;
use crate::fd_passing;
use crate::sandbox::Confinement;
use crate::sandbox::bubblewrap::{BwrapChecks, BwrapCommand};
use crate::setup_error::{SetupError, context};
use crate::shim_messages::{self, Request};

/// The shim's part.
pub(super) fn run_sandboxed(
    control: UnixStream,
    command: ShellCommand<'_>,
    confinement: &Confinement,
) -> ExitCode {
    let ShellCommand { command, script, stdin } = command;
    // Only for listings of commands.
    let script = script.and_then(|script| shell::write_memfd(script, &command.script));
    match start_with_retries(&control, (command, stdin), confinement) {
        Ok((first, socket, stderr)) => {
            let monitor = SandboxMonitor::new(control, first, socket, script.ok());
            run_monitor(monitor.with_stderr(stderr), command)
        }
        Err(failure) => report_failure(&control, failure),
    }
}

/// The largest number of attempts: a path to hide may vanish meanwhile, and come back.
const MAX_ATTEMPTS: usize = 8;

/// Starts bubblewrap until our program runs inside it, or fails for good.
fn start_with_retries(
    control: &UnixStream,
    (command, stdin): (&Command, Option<OwnedFd>),
    confinement: &Confinement,
) -> Result<StartedBubblewrap, SetupError> {
    become_subreaper()?;
    let stdin = stdin.as_ref();
    for _ in 1..MAX_ATTEMPTS {
        match start_bubblewrap(command, stdin, confinement) {
            Ok(started) if wait_for_first_message(control, &started.1) => return Ok(started),
            // It has closed the socket: it has exited, or is about to.
            Ok((pid, ..)) => drop(waitpid(Some(pid), WaitOptions::empty())),
            Err(failure) if failure.error.kind() == io::ErrorKind::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    start_bubblewrap(command, stdin, confinement)
}

/// The pid of bubblewrap, the socket to the program inside it, and the stderr of bubblewrap.
type StartedBubblewrap = (Pid, UnixStream, OwnedFd);

/// Waits for a message from inside or from the runtime. Returns false if the process inside is gone.
fn wait_for_first_message(control: &UnixStream, socket: &UnixStream) -> bool {
    let mut either = [PollFd::new(control, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
    let waited = retry_on_intr(|| poll(&mut either, None));
    if waited.is_err() || either[1].revents().is_empty() {
        return true;
    }
    let inner_end = retry_on_intr(|| recv(socket, &mut [0_u8], RecvFlags::PEEK));
    inner_end.is_ok_and(|(_, length)| length > 0)
}

/// Starts bubblewrap, which starts our own program.
fn start_bubblewrap(
    command: &Command,
    stdin: Option<&OwnedFd>,
    confinement: &Confinement,
) -> Result<StartedBubblewrap, SetupError> {
    // The arguments of this process select the shim in our program.
    let arguments = std::env::args_os().skip(1);
    let (mut bubblewrap, inherited, inside) =
        BwrapCommand::new(&confinement.sandbox)?.command(arguments)?;
    let (outer_end, inner_end) = context("create a socket", UnixStream::pair())?;
    let stderr =
        context("create a buffer for bubblewrap's messages", shell::memfd_with("words", b""))?;
    let stderr_copy = context("create a buffer for bubblewrap's messages", stderr.try_clone())?;
    bubblewrap
        .env_clear()
        .stdin(OwnedFd::from(inner_end))
        .stdout(Stdio::null())
        .stderr(stderr_copy);
    let first = context("start bubblewrap", bubblewrap.spawn())?;
    // Closes the other end of the socket, and the inherited descriptors.
    drop((bubblewrap, inherited));
    let request =
        Request::RunInBubblewrap(Cow::Borrowed(command), Cow::Borrowed(confinement), inside);
    let request = context("encode the request", shim_messages::encode(&request))?;
    // If it has already exited, its stderr says more than this error.
    let (output, errors) = (io::stdout(), io::stderr());
    let mut streams = vec![output.as_fd(), errors.as_fd()];
    streams.extend(stdin.map(OwnedFd::as_fd));
    let _ = fd_passing::send(&outer_end, &request, &streams);
    Ok((Pid::from_child(&first), outer_end, stderr))
}

/// The part of the first process inside.
pub(in super::super) fn run_first_process(
    command: ShellCommand<'_>,
    (confinement, inside): (&Confinement, &BwrapChecks),
    inner_end: &UnixStream,
) -> ExitCode {
    super::run_first_process(command, || confinement.enter_in_bubblewrap(inside), inner_end)
}
