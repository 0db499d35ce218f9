//! The shim: the small process that starts a command's shell, reaps its descendants, and ends them when it is
//! told to or when the runtime is gone.
//!
//! One thread waits for children, so that no zombie remains and the exit of the last one is noticed at once. The
//! other reads requests from the socket; end of file counts as a request to end the command. All processes of a
//! command stay descendants of the shim, whatever they do (a shim is a subreaper), so a walk over the process
//! tree finds them.
//!
//! A sandboxed command has one more process between the shim and the shell ([`first_process`]), and the shim has a
//! single thread ([`sandbox_monitor`]).

mod bash_prologue;
mod copies;
mod first_process;
mod sandbox_monitor;
mod shell;
mod signal_state;

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, getpid};

use self::shell::{Shell, ShellCommand};

use crate::inherited_descriptors::close_inherited;
use crate::limits::Limits;
use crate::process_tree::ProcessTree;
use crate::sandbox;
use crate::sandbox::level::Level;
use crate::sandbox::namespaces::SessionNamespaces;
use crate::sandbox::network_namespace::{SESSION_SOCKETS, make_tcp_sockets};
use crate::setup_error::{SetupError, context};
use crate::shim_messages::{self, Ending, Request, ShimMessage};

/// How long processes have to end after SIGTERM when the runtime is gone. None should be alive five seconds
/// later.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);

/// The number of processes that were signalled.
static TERMINATED: AtomicU64 = AtomicU64::new(0);

/// The number of processes that were killed because SIGTERM did not end them.
static FORCE_KILLED: AtomicU64 = AtomicU64::new(0);

/// Runs one command with the socket on stdin. Must be called first in a program that a [`crate::Launcher`]
/// started.
pub fn run_shim() -> ExitCode {
    close_inherited();
    signal_state::reset_signals();
    let no_socket = ExitCode::from(2);
    let Ok((request, descriptors)) = copies::next_request() else { return no_socket };
    // Only the standard streams are below it, so that its number, which the shell names in its messages, is always the same.
    let script = memfd_create("script", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let Ok(control) = control_socket() else { return no_socket };
    match request {
        // Already handled.
        Request::Fork { .. } => no_socket,
        Request::MakeNamespaces { with_gateway } => make_namespaces(&control, with_gateway),
        Request::MakeSockets => make_more_sockets(&control, descriptors),
        Request::Run(command, confinement, limits) => {
            let mut descriptors = descriptors.into_iter();
            let command = match ShellCommand::receive(&command, script, &mut descriptors) {
                Ok(command) => command,
                Err(failure) => return report_failure(&control, failure),
            };
            match confinement {
                None => run_unsandboxed(&control, command, limits),
                Some(confinement) => {
                    let confinement = confinement.into_owned();
                    let namespaces = match confinement.level {
                        Level::Namespaces => SessionNamespaces::take(&mut descriptors),
                        _ => None,
                    };
                    let rules = descriptors.next();
                    first_process::run_sandboxed(control, command, confinement, namespaces, rules)
                }
            }
        }
        Request::RunInBubblewrap(command, confinement, inside) => {
            match ShellCommand::receive(&command, script, &mut descriptors.into_iter()) {
                Ok(command) => first_process::run_first_process_in_bubblewrap(
                    command,
                    (&confinement, &inside),
                    &control,
                ),
                Err(failure) => report_failure(&control, failure),
            }
        }
    }
}

/// Runs a command without a sandbox: the shell is a child of this process.
fn run_unsandboxed(
    control: &UnixStream,
    command: ShellCommand<'_>,
    limits: Option<Limits>,
) -> ExitCode {
    let limited = limits.map_or(Ok(()), |limits| sandbox::limit_without_sandbox(&limits));
    let shell = match limited.and_then(|()| Shell::start(command)) {
        Ok(shell) => shell,
        Err(failure) => return report_failure(control, failure),
    };
    send_message(control, &ShimMessage::Started { intermediate: Vec::new() });
    spawn_listener(control);
    shell.reap(|message| send_message(control, message));
    send_finished(control)
}

/// Makes the namespaces of a session, and sends their descriptors.
fn make_namespaces(control: &UnixStream, with_gateway: bool) -> ExitCode {
    let (namespaces, sockets) = match SessionNamespaces::make(with_gateway) {
        Ok(made) => made,
        Err(failure) => return report_failure(control, failure),
    };
    let sockets = sockets.iter().map(OwnedFd::as_fd);
    let all: Vec<BorrowedFd<'_>> = namespaces.descriptors().into_iter().chain(sockets).collect();
    send_descriptors(control, &all)
}

/// Makes unbound sockets in the namespaces of a session, and sends their descriptors.
fn make_more_sockets(control: &UnixStream, namespaces: Vec<OwnedFd>) -> ExitCode {
    let make = || -> Result<Vec<OwnedFd>, SetupError> {
        let missing = io::Error::from_raw_os_error(libc::EBADF);
        let namespaces = SessionNamespaces::take(&mut namespaces.into_iter()).ok_or(missing);
        context("find the session's namespaces", namespaces)?.join_for_sockets()?;
        context("make sockets for hosts", make_tcp_sockets(SESSION_SOCKETS))
    };
    match make() {
        Ok(sockets) => {
            let all: Vec<BorrowedFd<'_>> = sockets.iter().map(OwnedFd::as_fd).collect();
            send_descriptors(control, &all)
        }
        Err(failure) => report_failure(control, failure),
    }
}

fn send_descriptors(control: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> ExitCode {
    match shim_messages::send(
        control,
        &ShimMessage::Started { intermediate: Vec::new() },
        descriptors,
    ) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn report_failure(control: &UnixStream, failure: SetupError) -> ExitCode {
    send_message(control, &failure.into());
    ExitCode::FAILURE
}

fn send_finished(control: &UnixStream) -> ExitCode {
    send_message(
        control,
        &ShimMessage::Finished {
            terminated: TERMINATED.load(Ordering::Relaxed),
            force_killed: FORCE_KILLED.load(Ordering::Relaxed),
        },
    );
    ExitCode::SUCCESS
}

/// Starts a thread that reads the requests of the runtime.
fn spawn_listener(control: &UnixStream) {
    let requests = control.try_clone();
    // Without that thread, the end of the runtime would not be noticed.
    let listening = requests.and_then(|requests| {
        let listener = std::thread::Builder::new().name("listen".to_owned());
        listener.spawn(move || listen_for_requests(&requests))
    });
    if listening.is_err() {
        end_all(Duration::ZERO);
    }
}

/// Handles the requests of the runtime. When it is gone, ends all processes.
fn listen_for_requests(mut control: &UnixStream) {
    let mut byte = [0];
    loop {
        match control.read(&mut byte) {
            Ok(1) => {
                if let Some(ending) = Ending::from_byte(byte[0]) {
                    end_all(ending.grace());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                // This process exits with its last child. Until then there may be new ones.
                loop {
                    end_all(ORPHAN_GRACE);
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
}

/// Ends all descendants of this process, however long that takes.
fn end_all(grace: Duration) {
    own_tree(&[]).end(grace, Duration::MAX, &mut std::thread::sleep);
}

/// The descendants of this process. `intermediate` are our own processes between this one and the shell.
fn own_tree(intermediate: &[Pid]) -> ProcessTree<'_> {
    ProcessTree {
        shim: getpid().as_raw_pid(),
        intermediate,
        terminated: &TERMINATED,
        force_killed: &FORCE_KILLED,
    }
}

fn send_message(control: &UnixStream, message: &ShimMessage) {
    // The runtime may be gone.
    let _ = shim_messages::send(control, message, &[]);
}

/// The socket to the runtime, which is the stdin of a shim.
fn control_socket() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
