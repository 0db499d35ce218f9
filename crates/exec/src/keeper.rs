//! The keeper's side of a command: the small process that starts the shell, reaps all that comes of it,
//! and ends it when it is told to or when nobody is left to tell.
//!
//! One thread waits for children, so that none stays a zombie and the end of the last is seen at once. The
//! other waits for a word on the socket; the end of the socket is one. What a command starts stays beneath
//! the keeper whatever it does (a keeper is a subreaper), so a walk down from here finds it.

mod prologue;
mod tree;

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, WaitOptions, WaitStatus, chdir, getpid, set_child_subreaper, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

pub use self::tree::Process;
pub(crate) use self::tree::{descendants, end, kill_session};

use crate::command::{Command, Exit};
use crate::wire::{self, Ending, Notice};

/// How long what was asked to end has to do so when the runtime is gone: nothing is to be alive five
/// seconds later.
const GRACE_ALONE: Duration = Duration::from_secs(1);

/// What a shell may leave behind of its environment; the system takes no larger one anyway.
const MAX_LEFT: u64 = 4 << 20;

/// How many processes were told to end.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Keeps one command, from the socket on stdin; to be called first thing in a program that was started
/// by a [`crate::Launcher`].
pub fn keep() -> ExitCode {
    match begin() {
        Ok(kept) => kept.see_through(),
        Err(NotBegun::NoSocket) => ExitCode::from(2),
        Err(NotBegun::Failed(control, notice)) => {
            tell(&control, &notice);
            ExitCode::FAILURE
        }
    }
}

/// A command whose shell runs.
struct Kept {
    control: UnixStream,
    shell: Pid,
    files: Files,
}

/// What the shell opens by path, so that it must stay open here.
struct Files {
    /// Whoever lists commands reads it here ([`crate::all_kept`]).
    _script: OwnedFd,
    _prologue: OwnedFd,
    /// Where the shell writes what it leaves.
    left: OwnedFd,
}

enum NotBegun {
    NoSocket,
    Failed(UnixStream, Notice),
}

fn begin() -> Result<Kept, NotBegun> {
    close_inherited();
    // First, so that its number, which the shell names in its messages, is always the same.
    let script = memfd_create("script", MemfdFlags::CLOEXEC);
    let control = io::stdin().as_fd().try_clone_to_owned().map_err(|_| NotBegun::NoSocket)?;
    let control = UnixStream::from(control);
    let command = wire::read_command(&control).map_err(|_| NotBegun::NoSocket)?;
    match start(&command, script.map_err(io::Error::from)) {
        Ok((shell, files)) => Ok(Kept { control, shell, files }),
        Err(failure) => Err(NotBegun::Failed(control, failure.notice())),
    }
}

/// A step of the preparation that failed.
struct Failure {
    step: &'static str,
    what: String,
    error: io::Error,
}

impl Failure {
    fn notice(self) -> Notice {
        let errno = self.error.raw_os_error().unwrap_or(0);
        Notice::NotStarted { step: self.step.to_owned(), what: self.what, errno }
    }
}

/// Marks an error with the step that it was made in.
fn at<T>(
    step: &'static str,
    what: &Path,
    outcome: Result<T, impl Into<io::Error>>,
) -> Result<T, Failure> {
    outcome.map_err(|error| Failure { step, what: what.display().to_string(), error: error.into() })
}

fn start(command: &Command, script: io::Result<OwnedFd>) -> Result<(Pid, Files), Failure> {
    let nothing = Path::new("");
    at("begin a session", nothing, setsid())?;
    at("adopt what is left behind", nothing, set_child_subreaper(Some(getpid())))?;
    at("enter the directory", &command.directory, chdir(&command.directory))?;
    let script = script.and_then(|script| fill(script, &command.script));
    let script = at("hold the script", nothing, script)?;
    let left = at("hold the environment", nothing, filled("left", b""))?;
    let prologue = prologue::text(&script, &left);
    let prologue = at("hold the prologue", nothing, filled("prologue", &prologue))?;
    let stdin = at("hold the input", nothing, stdin(&command.stdin))?;
    let script_path = at("hand on the script", nothing, prologue::hand_on(&script))?;

    let mut shell = std::process::Command::new(&command.shell);
    shell.args(["--noprofile", "--norc"]).arg(script_path);
    shell.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
    shell.env("BASH_ENV", prologue::path_of(&prologue)).stdin(Stdio::from(stdin));
    let child = at("start the shell", &command.shell, shell.spawn())?;
    // Nobody but the command holds its output now: when it lets go, that is seen.
    at("let go of the output", nothing, let_go())?;
    Ok((Pid::from_child(&child), Files { _script: script, _prologue: prologue, left }))
}

impl Kept {
    fn see_through(self) -> ExitCode {
        tell(&self.control, &Notice::Started);
        let ears = self.control.try_clone();
        // Without a second thread nobody listens: then the runtime's end would go unheard.
        let listening = ears.and_then(|ears| {
            std::thread::Builder::new().name("listen".to_owned()).spawn(move || listen(&ears))
        });
        if listening.is_err() {
            end_all(Duration::ZERO);
        }
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == self.shell => self.tell_exit(status),
                Ok(_) | Err(Errno::INTR) => {}
                // No child is left.
                Err(_) => break,
            }
        }
        tell(&self.control, &Notice::Over { ended: ENDED.load(Ordering::Relaxed) });
        ExitCode::SUCCESS
    }

    fn tell_exit(&self, status: WaitStatus) {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        };
        let (cpu, peak_bytes) = used();
        let left = read_back(&self.files.left);
        tell(&self.control, &Notice::Exited { exit, cpu, peak_bytes, left });
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
    tree::end(getpid().as_raw_nonzero().get(), grace, Duration::MAX, &ENDED);
}

fn tell(mut control: &UnixStream, notice: &Notice) {
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

/// A file without a name that holds some bytes.
fn filled(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    fill(memfd_create(name, MemfdFlags::CLOEXEC)?, content)
}

fn fill(file: OwnedFd, content: &[u8]) -> io::Result<OwnedFd> {
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

fn let_go() -> io::Result<()> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

fn read_back(file: &OwnedFd) -> Vec<u8> {
    use std::io::Seek as _;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::from(file.try_clone()?);
        file.rewind()?;
        let mut bytes = Vec::new();
        file.take(MAX_LEFT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}

/// What children used, the shell's own among them once it is reaped.
fn used() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (Duration::ZERO, 0) };
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    let cpu = micros(usage.user_time()) + micros(usage.system_time());
    // In units of 1024 bytes.
    (Duration::from_micros(cpu), u64::try_from(usage.max_rss()).unwrap_or(0) * 1024)
}
