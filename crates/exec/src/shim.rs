//! The keeper's side of a command: the small process that starts the shell, reaps all that comes of it,
//! and ends it when it is told to or when nobody is left to tell.
//!
//! One thread waits for children, so that none stays a zombie and the end of the last is seen at once. The
//! other waits for a word on the socket; the end of the socket is one. What a command starts stays beneath
//! the keeper whatever it does (a keeper is a subreaper), so a walk down from here finds it.
//!
//! A command in a sandbox has one process more between the keeper and the shell ([`confined`]), and then
//! the keeper has one thread only ([`attendant`]).

mod confined;
mod process_tree;
mod prologue;
mod sandboxed;
mod shell;

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, getpid};

pub use self::process_tree::Process;
pub(crate) use self::process_tree::{Doomed, children, descendants, kill_session};
use self::shell::Shell;

use crate::command::Command;
use crate::fd_passing;
use crate::sandbox::namespaces::Space;
use crate::setup_error::Failure;
use crate::wire::{self, Ending, Request, ShimMessage};

/// How long what was asked to end has to do so when the runtime is gone: nothing is to be alive five
/// seconds later.
const GRACE_ALONE: Duration = Duration::from_secs(1);

/// How many processes were told to end.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Keeps one command, from the socket on stdin; to be called first thing in a program that was started
/// by a [`crate::Launcher`].
pub fn run_shim() -> ExitCode {
    close_inherited();
    // First, so that its number, which the shell names in its messages, is always the same.
    let script = memfd_create("script", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let no_socket = ExitCode::from(2);
    let Ok(control) = io::stdin().as_fd().try_clone_to_owned() else { return no_socket };
    let control = UnixStream::from(control);
    let Ok((request, descriptors)) = wire::read_request(&control) else { return no_socket };
    match request {
        Request::MakeSpace => make_space(&control),
        Request::Run(command, None) => keep_here(&control, &command, script),
        Request::Run(command, Some(confinement)) => {
            let space = Space::of_descriptors(descriptors);
            confined::keep(control, &command, script, confinement, space)
        }
        Request::BeFirst(command, confinement, inside) => {
            let inside = (&confinement, &inside);
            confined::be_first_wrapped(&command, script, inside, descriptors, &control)
        }
    }
}

/// A command without a sandbox: the shell is this process's own child.
fn keep_here(control: &UnixStream, command: &Command, script: io::Result<OwnedFd>) -> ExitCode {
    let shell = match Shell::start(command, script) {
        Ok(shell) => shell,
        Err(failure) => return give_up(control, failure),
    };
    tell(control, &ShimMessage::Started { between: Vec::new() });
    attend(control);
    shell.reap(|notice| tell(control, notice));
    tell_over(control)
}

/// Makes the namespaces of a session, and hands them over.
fn make_space(control: &UnixStream) -> ExitCode {
    let space = match Space::make() {
        Ok(space) => space,
        Err(failure) => return give_up(control, failure),
    };
    let made = wire::encode_notice(&ShimMessage::Started { between: Vec::new() });
    match fd_passing::send(control, &made, &space.descriptors()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn give_up(control: &UnixStream, failure: Failure) -> ExitCode {
    tell(control, &failure.notice());
    ExitCode::FAILURE
}

fn tell_over(control: &UnixStream) -> ExitCode {
    tell(control, &ShimMessage::Over { ended: ENDED.load(Ordering::Relaxed) });
    ExitCode::SUCCESS
}

/// Has a thread listen to the runtime.
fn attend(control: &UnixStream) {
    let ears = control.try_clone();
    // Without a second thread nobody listens: then the runtime's end would go unheard.
    let listening = ears.and_then(|ears| {
        let listener = std::thread::Builder::new().name("listen".to_owned());
        listener.spawn(move || listen(&ears))
    });
    if listening.is_err() {
        end_all(Duration::ZERO);
    }
}

/// Does what the runtime asks for; and what it would ask for, once it is gone.
fn listen(mut control: &UnixStream) {
    let mut word = [0];
    loop {
        match control.read(&mut word) {
            Ok(1) => {
                if let Some(ending) = Ending::of_word(word[0]) {
                    end_all(ending.grace());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                // The process ends when the last child has; until then there may be new ones.
                loop {
                    end_all(GRACE_ALONE);
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
}

/// Ends all that this process keeps, however long that takes.
fn end_all(grace: Duration) {
    doomed(&[]).end(grace, Duration::MAX, &mut std::thread::sleep);
}

/// All that this process keeps; `between` are the processes between this one and the shell.
fn doomed(between: &[Pid]) -> Doomed<'_> {
    Doomed { ancestor: getpid().as_raw_pid(), between, ended: &ENDED }
}

fn tell(mut control: &UnixStream, notice: &ShimMessage) {
    // Nobody to hear it is nothing to stop for.
    let _ = control.write_all(&wire::encode_notice(notice));
}

/// What the host had open and did not mark as its own.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let inherited: Vec<i32> = numbers.filter(|&number| number > 2).collect();
    for number in inherited {
        // One of them was the listing itself, and is closed already.
        let _ = nix::unistd::close(number);
    }
}
