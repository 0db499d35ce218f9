//! The shell of a command: starts it, reaps it and its descendants, and reports its exit.

use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, chdir, getpid, set_child_subreaper, wait};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::bash_prologue;
use crate::command::{Command, Exit, Stdin};
use crate::sandbox::{start_in_terminal_session, start_process_session};
use crate::setup_error::{SetupError, context, path_context};
use crate::shim_messages::ShimMessage;
use crate::streams::ReceivedStreams;

/// The largest state that a shell may report. The kernel accepts no larger environment anyway.
const MAX_STATE_BYTES: u64 = 4 << 20;

/// The usual size of that state.
const USUAL_STATE_BYTES: usize = 16 << 10;

/// A command with the files that its shell needs.
pub(super) struct ShellCommand<'a> {
    pub(super) command: &'a Command,
    /// A memory file for the script, made before anything else was opened.
    pub(super) script: io::Result<OwnedFd>,
    /// Its stdin, unless the command has the content.
    pub(super) stdin: Option<OwnedFd>,
}

impl<'a> ShellCommand<'a> {
    /// Takes the streams of a command from the descriptors of its request. Stdout and stderr become those of this
    /// process.
    pub(super) fn receive(
        command: &'a Command,
        script: io::Result<OwnedFd>,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<ShellCommand<'a>, SetupError> {
        let missing = || io::Error::from_raw_os_error(libc::EBADF);
        let streams = ReceivedStreams::take(command, descriptors).ok_or_else(missing);
        let ReceivedStreams { stdin, stdout, stderr } = context("receive the streams", streams)?;
        context("redirect the output", dup2_stdout(stdout))?;
        context("redirect the output", dup2_stderr(stderr))?;
        Ok(ShellCommand { command, script, stdin })
    }
}

/// A running shell.
pub(super) struct Shell {
    pid: Pid,
    /// Read by listings of commands ([`crate::all_running_jobs`]).
    _script: OwnedFd,
    /// The shell opens it by path, so it must stay open here.
    _prologue: OwnedFd,
    /// The file to which the shell writes its state.
    state_file: OwnedFd,
}

impl Shell {
    /// Starts the shell.
    pub(super) fn start(command: ShellCommand<'_>) -> Result<Shell, SetupError> {
        let ShellCommand { command, script, stdin } = command;
        context("start a process session", start_process_session())?;
        match set_child_subreaper(Some(getpid())) {
            // Old versions of gVisor do not have it. Then processes that detach themselves survive their command, which
            // replies say for commands that run there.
            Err(Errno::INVAL) => {}
            became => context("become the reaper of orphaned processes", became)?,
        }
        path_context("enter the directory", &command.directory, chdir(&command.directory))?;
        let script = script.and_then(|script| write_memfd(script, &command.script));
        let script = context("store the script", script)?;
        let state_file = context("store the environment", memfd_with("left", b""))?;
        let prologue = bash_prologue::prologue_script(&script, &state_file);
        let prologue = context("store the prologue", memfd_with("prologue", &prologue))?;
        let stdin = match (&command.stdin, stdin) {
            (Stdin::Content(content), _) => content_as_stdin(content),
            (_, stdin) => stdin.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF)),
        };
        let stdin = context("prepare the input", stdin)?;
        let script_path = context("pass on the script", bash_prologue::inherit_script(&script))?;

        let mut shell = std::process::Command::new(&command.shell);
        shell.args(["--noprofile", "--norc"]).arg(script_path);
        shell.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
        shell.env("BASH_ENV", bash_prologue::proc_path(&prologue)).stdin(Stdio::from(stdin));
        // Its own process group or session: `kill 0` must not reach this process.
        if matches!(command.stdin, Stdin::Terminal { .. }) {
            start_in_terminal_session(&mut shell);
        } else {
            shell.process_group(0);
        }
        let child = path_context("start the shell", &command.shell, shell.spawn())?;
        // Now only the command holds its output open, so that its end is noticed.
        context("close the output", detach_stdio())?;
        Ok(Shell { pid: Pid::from_child(&child), _script: script, _prologue: prologue, state_file })
    }

    /// Reaps all descendants until none is left. Calls `tell` when the shell itself has exited.
    pub(super) fn reap(&self, tell: impl Fn(&ShimMessage)) {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == self.pid => tell(&self.exit_message(status)),
                Ok(_) | Err(Errno::INTR) => {}
                // No child is left.
                Err(_) => break,
            }
        }
    }

    fn exit_message(&self, status: WaitStatus) -> ShimMessage {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        };
        let (cpu, peak_bytes) = children_usage();
        ShimMessage::Exited { exit, cpu, peak_bytes, shell_state: read_memfd(&self.state_file) }
    }
}

/// Replaces the standard streams by `/dev/null`. It is opened for reading only: opening it for writing would
/// wait for the supervisor.
pub(super) fn detach_stdio() -> io::Result<()> {
    let null = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// The resources that reaped children used, including the shell.
pub(super) fn children_usage() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (Duration::ZERO, 0) };
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    let cpu = micros(usage.user_time()) + micros(usage.system_time());
    // In units of 1024 bytes.
    (Duration::from_micros(cpu), u64::try_from(usage.max_rss()).unwrap_or(0) * 1024)
}

/// A memory file with some content.
pub(super) fn memfd_with(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    write_memfd(memfd_create(name, MemfdFlags::CLOEXEC)?, content)
}

pub(super) fn write_memfd(file: OwnedFd, content: &[u8]) -> io::Result<OwnedFd> {
    std::fs::File::from(file.try_clone()?).write_all(content)?;
    Ok(file)
}

fn content_as_stdin(content: &[u8]) -> io::Result<OwnedFd> {
    let read_only = OFlags::RDONLY | OFlags::CLOEXEC;
    if content.is_empty() {
        return Ok(open("/dev/null", read_only, Mode::empty())?);
    }
    let file = memfd_with("stdin", content)?;
    // Opened again: at its start, and for reading only.
    Ok(open(bash_prologue::proc_path(&file), read_only, Mode::empty())?)
}

/// Reads the content of a memory file.
pub(super) fn read_memfd(file: &OwnedFd) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::from(file.try_clone()?);
        file.rewind()?;
        let mut bytes = Vec::with_capacity(USUAL_STATE_BYTES);
        file.take(MAX_STATE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}
