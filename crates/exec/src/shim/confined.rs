//! A command in a sandbox: a process of its own between the keeper and the shell, the first inside.
//!
//! It does what the keeper otherwise does, starting the shell and reaping; but it is within reach of the
//! command, which may do anything to it. So it has nothing to hold on to: what it says goes through a
//! socket to the keeper, which stays outside, unseen, and needs nobody's help to end everything
//! ([`super::sandboxed`]).

mod bwrap;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{
    Signal, chdir, getpid, set_child_subreaper, set_parent_process_death_signal, setsid,
};

pub(super) use self::bwrap::be_first as be_first_wrapped;

use super::give_up;
use super::sandboxed::Attendant;
use super::shell::{self, Shell};
use crate::command::Command;
use crate::fd_passing;
use crate::sandbox::level::Level;
use crate::sandbox::namespaces::Space;
use crate::sandbox::{Confinement, Entered, Forked, Prepared, fork};
use crate::setup_error::{Failure, plainly};
use crate::wire::{self, ShimMessage};

/// Keeps a command in a sandbox. Returns twice: in the keeper, and in the process that is first inside.
pub(super) fn keep(
    control: UnixStream,
    command: &Command,
    script: io::Result<OwnedFd>,
    confinement: Confinement,
    space: Option<Space>,
) -> ExitCode {
    if confinement.level == Level::Bubblewrap {
        return bwrap::keep(control, command, script, &confinement);
    }
    let (prepared, (heard, said)) = match prepare(confinement, space) {
        Ok(prepared) => prepared,
        Err(failure) => return give_up(&control, failure),
    };
    match plainly("fork", fork()) {
        Ok(Forked::Child) => {
            drop((control, heard));
            be_first(command, script, || prepared.enter(), &said)
        }
        Ok(Forked::Parent(first)) => {
            drop(said);
            attend(Attendant::new(control, first, heard, script.ok()), command)
        }
        Err(failure) => give_up(&control, failure),
    }
}

/// The keeper's part, once there is somebody inside.
fn attend(attendant: Attendant, command: &Command) -> ExitCode {
    // Only for whoever lists commands: this process has nothing to do there.
    let _ = chdir(&command.directory);
    match plainly("let go of the output", shell::let_go()) {
        Ok(()) => attendant.attend(),
        Err(failure) => attendant.give_up(failure),
    }
}

fn prepare(
    confinement: Confinement,
    space: Option<Space>,
) -> Result<(Prepared, (UnixStream, UnixStream)), Failure> {
    become_keeper()?;
    let prepared = confinement.prepare(space.as_ref())?;
    let ends = plainly("make a socket", UnixStream::pair())?;
    Ok((prepared, ends))
}

fn become_keeper() -> Result<(), Failure> {
    plainly("begin a session", setsid())?;
    plainly("adopt what is left behind", set_child_subreaper(Some(getpid())))
}

/// The first process inside: confines itself, starts the shell, and reaps until nothing is left.
fn be_first(
    command: &Command,
    script: io::Result<OwnedFd>,
    enter: impl FnOnce() -> Result<Entered, Failure>,
    said: &UnixStream,
) -> ExitCode {
    let say = |notice: &ShimMessage| fd_passing::send(said, &wire::encode_notice(notice), &[]);
    let begin = move || -> Result<_, Failure> {
        // The keeper has one thread yet, and it is the one that lasts.
        let dies = set_parent_process_death_signal(Some(Signal::KILL));
        plainly("die with the keeper", dies)?;
        let Entered { listener, sockets } = enter()?;
        // From here on the supervisor must answer, before this process opens anything.
        let descriptors: Vec<BorrowedFd<'_>> =
            [Some(&listener), sockets.as_ref()].into_iter().flatten().map(OwnedFd::as_fd).collect();
        let notice = wire::encode_notice(&ShimMessage::Supervised);
        plainly("hand over to the supervisor", fd_passing::send(said, &notice, &descriptors))?;
        Shell::start(command, script)
    };
    match begin() {
        // The keeper may have died before that word was given: then nobody is there to hear this.
        Ok(shell) => {
            if say(&ShimMessage::Started { between: Vec::new() }).is_ok() {
                shell.reap(|notice| drop(say(notice)));
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            drop(say(&failure.notice()));
            ExitCode::FAILURE
        }
    }
}
