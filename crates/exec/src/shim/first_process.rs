//! The first process inside the sandbox of a command, between the shim and the shell.
//!
//! It starts the shell and reaps, like the shim of a command without a sandbox. But the command can reach it
//! and may do anything to it. So nothing depends on it: it sends its messages on a socket to the shim, which
//! stays outside, invisible, and can end everything without its help ([`super::sandbox_monitor`]).

mod bwrap;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{
    Signal, chdir, getpid, set_child_subreaper, set_parent_process_death_signal,
};

pub(super) use self::bwrap::run_first_process as run_first_process_in_bubblewrap;

use super::report_failure;
use super::sandbox_monitor::SandboxMonitor;
use super::shell::{self, Shell, ShellCommand};
use crate::command::Command;
use crate::sandbox::level::Level;
use crate::sandbox::namespaces::SessionNamespaces;
use crate::sandbox::{Confined, Confinement, Forked, Prepared, fork, start_process_session};
use crate::setup_error::{SetupError, context};
use crate::shim_messages::{self, ShimMessage};

/// Runs a command in a sandbox. Returns twice: in the shim, and in the first process inside.
pub(super) fn run_sandboxed(
    control: UnixStream,
    command: ShellCommand<'_>,
    confinement: Confinement,
    namespaces: Option<SessionNamespaces>,
    rules: Option<OwnedFd>,
) -> ExitCode {
    if confinement.level == Level::Bubblewrap {
        return bwrap::run_sandboxed(control, command, &confinement);
    }
    let (prepared, (outer_end, inner_end)) = match prepare(confinement, namespaces, rules) {
        Ok(prepared) => prepared,
        Err(failure) => return report_failure(&control, failure),
    };
    match context("fork", fork()) {
        Ok(Forked::Child) => {
            drop((control, outer_end));
            run_first_process(command, || prepared.enter(), &inner_end)
        }
        Ok(Forked::Parent(first)) => {
            let ShellCommand { command, script, stdin } = command;
            // The command is the only reader of its stdin.
            drop((inner_end, stdin, prepared));
            run_monitor(SandboxMonitor::new(control, first, outer_end, script.ok()), command)
        }
        Err(failure) => report_failure(&control, failure),
    }
}

/// The shim's part, once the first process inside exists.
fn run_monitor(monitor: SandboxMonitor, command: &Command) -> ExitCode {
    // Only for listings of commands: this process does nothing there.
    let _ = chdir(&command.directory);
    match context("close the output", shell::detach_stdio()) {
        Ok(()) => monitor.run(),
        Err(failure) => monitor.report_failure(failure),
    }
}

fn prepare(
    confinement: Confinement,
    namespaces: Option<SessionNamespaces>,
    rules: Option<OwnedFd>,
) -> Result<(Prepared, (UnixStream, UnixStream)), SetupError> {
    become_subreaper()?;
    let prepared = confinement.prepare(namespaces.as_ref(), rules)?;
    let ends = context("create a socket", UnixStream::pair())?;
    Ok((prepared, ends))
}

fn become_subreaper() -> Result<(), SetupError> {
    context("start a process session", start_process_session())?;
    context("become the reaper of orphaned processes", set_child_subreaper(Some(getpid())))
}

/// The first process inside: confines itself, starts the shell, and reaps until no child is left.
fn run_first_process(
    command: ShellCommand<'_>,
    enter: impl FnOnce() -> Result<Confined, SetupError>,
    inner_end: &UnixStream,
) -> ExitCode {
    let send = |message: &ShimMessage| shim_messages::send(inner_end, message, &[]);
    let begin = move || -> Result<_, SetupError> {
        // The shim has a single thread, which lives as long as the shim.
        let dies = set_parent_process_death_signal(Some(Signal::KILL));
        context("set the parent death signal", dies)?;
        let Confined { listener, sockets, network } = enter()?;
        // From here on the supervisor must respond before this process can open anything.
        if !network.is_empty() {
            // The sockets for a gateway are recognized by their position.
            let missing = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            context("list sockets", sockets.as_ref().ok_or(missing))?;
        }
        let all = [Some(&listener), sockets.as_ref()].into_iter().flatten().chain(&network);
        let descriptors: Vec<BorrowedFd<'_>> = all.map(OwnedFd::as_fd).collect();
        let sent = shim_messages::send(inner_end, &ShimMessage::SupervisionReady, &descriptors);
        context("send the descriptors to the supervisor", sent)?;
        Shell::start(command)
    };
    match begin() {
        // The shim may have died before the death signal was set. Then this send fails.
        Ok(shell) => {
            if send(&ShimMessage::Started { intermediate: Vec::new() }).is_ok() {
                shell.reap(|message| drop(send(message)));
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            drop(send(&failure.into()));
            ExitCode::FAILURE
        }
    }
}
