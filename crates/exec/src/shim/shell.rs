//! The shell of a command: how it is started, reaped, and what is heard of it.

use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, WaitOptions, WaitStatus, chdir, getpid, set_child_subreaper, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::prologue;
use crate::command::{Command, Exit};
use crate::setup_error::{Failure, at, plainly};
use crate::wire::ShimMessage;

/// What a shell may leave behind of its environment; the system takes no larger one anyway.
const MAX_LEFT: u64 = 4 << 20;

/// What it mostly is.
const USUAL_LEFT: usize = 16 << 10;

/// A shell that runs.
pub(super) struct Shell {
    pid: Pid,
    /// Whoever lists commands reads it here ([`crate::all_kept`]).
    _script: OwnedFd,
    /// The shell opens it by path, so it must stay open here.
    _prologue: OwnedFd,
    /// Where the shell writes what it leaves.
    left: OwnedFd,
}

impl Shell {
    /// Starts it. `script` is a file for the script, made before anything else was opened.
    pub(super) fn start(command: &Command, script: io::Result<OwnedFd>) -> Result<Shell, Failure> {
        plainly("begin a session", setsid())?;
        plainly("adopt what is left behind", set_child_subreaper(Some(getpid())))?;
        at("enter the directory", &command.directory, chdir(&command.directory))?;
        let script = script.and_then(|script| fill(script, &command.script));
        let script = plainly("hold the script", script)?;
        let left = plainly("hold the environment", filled("left", b""))?;
        let prologue = prologue::text(&script, &left);
        let prologue = plainly("hold the prologue", filled("prologue", &prologue))?;
        let stdin = plainly("hold the input", stdin(&command.stdin))?;
        let script_path = plainly("hand on the script", prologue::hand_on(&script))?;

        let mut shell = std::process::Command::new(&command.shell);
        shell.args(["--noprofile", "--norc"]).arg(script_path);
        shell.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
        shell.env("BASH_ENV", prologue::path_of(&prologue)).stdin(Stdio::from(stdin));
        // A group of its own: `kill 0` is not for the process that keeps it.
        shell.process_group(0);
        let child = at("start the shell", &command.shell, shell.spawn())?;
        // Nobody but the command holds its output now: when it lets go, that is seen.
        plainly("let go of the output", let_go())?;
        Ok(Shell { pid: Pid::from_child(&child), _script: script, _prologue: prologue, left })
    }

    /// Reaps all that comes of it until nothing is left, and tells when the shell itself has ended.
    pub(super) fn reap(&self, tell: impl Fn(&ShimMessage)) {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == self.pid => tell(&self.exited(status)),
                Ok(_) | Err(Errno::INTR) => {}
                // No child is left.
                Err(_) => break,
            }
        }
    }

    fn exited(&self, status: WaitStatus) -> ShimMessage {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        };
        let (cpu, peak_bytes) = used();
        ShimMessage::Exited { exit, cpu, peak_bytes, left: read_back(&self.left) }
    }
}

/// Lets go of the streams that the command has. For reading only: who opens something to write to it may
/// have to wait for a witness.
pub(super) fn let_go() -> io::Result<()> {
    let null = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// What children used, the shell's own among them once it is reaped.
pub(super) fn used() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (Duration::ZERO, 0) };
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    let cpu = micros(usage.user_time()) + micros(usage.system_time());
    // In units of 1024 bytes.
    (Duration::from_micros(cpu), u64::try_from(usage.max_rss()).unwrap_or(0) * 1024)
}

/// A file without a name that holds some bytes.
pub(super) fn filled(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    fill(memfd_create(name, MemfdFlags::CLOEXEC)?, content)
}

pub(super) fn fill(file: OwnedFd, content: &[u8]) -> io::Result<OwnedFd> {
    std::fs::File::from(file.try_clone()?).write_all(content)?;
    Ok(file)
}

fn stdin(content: &[u8]) -> io::Result<OwnedFd> {
    let read_only = OFlags::RDONLY | OFlags::CLOEXEC;
    if content.is_empty() {
        return Ok(open("/dev/null", read_only, Mode::empty())?);
    }
    let file = filled("stdin", content)?;
    // Opened anew: from its beginning, and for reading only.
    Ok(open(prologue::path_of(&file), read_only, Mode::empty())?)
}

/// What a file without a name holds.
pub(super) fn read_back(file: &OwnedFd) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::from(file.try_clone()?);
        file.rewind()?;
        let mut bytes = Vec::with_capacity(USUAL_LEFT);
        file.take(MAX_LEFT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}
