//! The thread that makes a supervised call: its descriptors, its working directory and its credentials.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, getegid, geteuid, kill_process, pidfd_getfd,
    pidfd_open, umask,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::guard::Program;

/// A thread of a command that waits for the response to a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    pub(super) thread: i32,
}

/// The start of a relative path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    WorkingDirectory,
    Descriptor(i32),
}

impl Base {
    /// The base of a `dirfd` argument, a number of 32 bits.
    pub(super) fn from_argument(argument: u64) -> Base {
        match argument as u32 as i32 {
            libc::AT_FDCWD => Base::WorkingDirectory,
            descriptor => Base::Descriptor(descriptor),
        }
    }
}

impl Caller {
    /// Opens the base of a path with `O_PATH`.
    pub(super) fn open_base(self, base: Base) -> rustix::io::Result<OwnedFd> {
        let path = match base {
            Base::WorkingDirectory => format!("/proc/{}/cwd", self.thread),
            Base::Descriptor(number) => format!("/proc/{}/fd/{number}", self.thread),
        };
        let opened = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        opened.map_err(|errno| if errno == Errno::NOENT { Errno::BADF } else { errno })
    }

    /// Opens the root directory in the command's view.
    pub(super) fn open_root(self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(format!("/proc/{}/root", self.thread), flags, Mode::empty())
    }

    /// Duplicates one of its descriptors, which may be a socket.
    pub(super) fn duplicate(self, number: i32) -> rustix::io::Result<OwnedFd> {
        let leader = self.status_field("Tgid:").ok_or(Errno::SRCH)?;
        let leader = leader.parse().ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let process = pidfd_open(leader, PidfdFlags::empty())?;
        pidfd_getfd(process, number, PidfdGetfdFlags::empty())
    }

    /// The target of `/proc/self`, in the numbers of the command's PID namespace.
    pub(super) fn proc_self(self) -> Option<String> {
        last_word(&self.status_field("NStgid:")?)
    }

    /// The target of `/proc/thread-self`.
    pub(super) fn proc_thread_self(self) -> Option<String> {
        let thread = last_word(&self.status_field("NSpid:")?)?;
        Some(format!("{}/task/{thread}", self.proc_self()?))
    }

    /// Its umask.
    pub(super) fn umask(self) -> Mode {
        let field = self.status_field("Umask:");
        let bits = field.and_then(|field| u32::from_str_radix(&field, 8).ok());
        Mode::from_raw_mode(bits.unwrap_or(0o077))
    }

    /// Its file size limit. `None` if there is none.
    pub(super) fn file_size_limit(self) -> Option<u64> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.thread)).ok()?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max file size"))?;
        limit.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Sends a signal to the process of this thread.
    pub(super) fn signal(self, signal: Signal) {
        let leader = self.status_field("Tgid:").and_then(|leader| leader.parse().ok());
        if let Some(leader) = leader.and_then(Pid::from_raw) {
            let _ = kill_process(leader, signal);
        }
    }

    /// The number of its controlling terminal in `/dev/pts`. `None` if it has none.
    pub(super) fn controlling_terminal(self) -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.thread)).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        let device: u32 = after_name.split_ascii_whitespace().nth(4)?.parse().ok()?;
        let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
        (136..=143).contains(&major).then(|| (major - 136) * 256 + minor)
    }

    /// The kernel's number of the device that holds a file in the command's view.
    pub(super) fn device_of(self, file: &OwnedFd) -> Option<u32> {
        let about = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", self.thread)).ok()?;
        let mount = about.stx_mnt_id.to_string();
        let line = mounts.lines().find(|line| line.split(' ').next() == Some(&mount))?;
        let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
        Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
    }

    /// The program that it runs.
    pub(super) fn program(self) -> Option<Program> {
        let path = fs::read_link(format!("/proc/{}/exe", self.thread)).ok()?;
        let mut line = Vec::new();
        let file = fs::File::open(format!("/proc/{}/cmdline", self.thread)).ok()?;
        file.take(MAX_ARGUMENT_BYTES).read_to_end(&mut line).ok()?;
        let arguments = line.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
        let arguments = arguments.map(|argument| OsStr::from_bytes(argument).to_owned());
        Some(Program { path, arguments: arguments.collect() })
    }

    /// The user and group with which its file accesses are checked.
    pub(super) fn credentials(self) -> Option<Credentials> {
        let number =
            |name| self.status_field(name).and_then(|field| last_word(&field)?.parse().ok());
        Some(Credentials { user: number("Uid:")?, group: number("Gid:")? })
    }

    /// The value of a field of `/proc/PID/status`.
    fn status_field(self, name: &str) -> Option<String> {
        let file = fs::File::open(format!("/proc/{}/status", self.thread)).ok()?;
        // The kernel makes the text in one piece, so one read is enough.
        let mut bytes = [0; MAX_STATUS_BYTES];
        let length = rustix::io::read(file, &mut bytes).ok()?;
        let status = String::from_utf8_lossy(&bytes[..length]);
        let field = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(field.trim().to_owned())
    }
}

/// More than `/proc/PID/status` has before its fields on CPUs and memory nodes, which are not used.
const MAX_STATUS_BYTES: usize = 4096;

/// Subcommands are among the first arguments.
const MAX_ARGUMENT_BYTES: u64 = 4096;

/// More ancestors than a process of a command has.
const MAX_ANCESTORS: usize = 1_000;

/// Whether a process is a descendant of another.
pub(super) fn is_descendant(process: i32, ancestor: i32) -> bool {
    let mut process = process;
    for _ in 0..MAX_ANCESTORS {
        let parent = Caller { thread: process }.status_field("PPid:");
        match parent.and_then(|parent| parent.parse().ok()) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent > 1 => process = parent,
            _ => return false,
        }
    }
    false
}

fn last_word(field: &str) -> Option<String> {
    field.split_ascii_whitespace().last().map(str::to_owned)
}

/// The user and group with which a command's file accesses are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Credentials {
    user: u32,
    group: u32,
}

impl Credentials {
    /// Runs `perform` with these credentials and without capabilities: a call for a command must never
    /// succeed where the command's own would fail.
    ///
    /// Credentials belong to the thread, so other threads of this process are not affected.
    pub(super) fn run_as<T>(
        self,
        perform: impl FnOnce() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        // No other code changes the capabilities of this thread.
        let own_capabilities = CAPABILITIES.with(|cell| {
            let read = || capabilities(None).ok().filter(|sets| !sets.effective.is_empty());
            *cell.get_or_init(read)
        });
        let Some(own_capabilities) = own_capabilities else { return perform() };
        let own = OWN_CREDENTIALS.with(|own| {
            *own.get_or_init(|| Credentials { user: geteuid().as_raw(), group: getegid().as_raw() })
        });
        if self != own {
            setfsgid(Gid::from_raw(self.group));
            setfsuid(Uid::from_raw(self.user));
        }
        let none = CapabilitySets { effective: CapabilitySet::empty(), ..own_capabilities };
        let dropped = set_capabilities(None, none);
        let outcome = dropped.map(|()| perform());
        // The permitted capabilities are unchanged, so this cannot fail.
        let _ = set_capabilities(None, own_capabilities);
        if self != own {
            setfsuid(Uid::from_raw(own.user));
            setfsgid(Gid::from_raw(own.group));
        }
        outcome?
    }
}

thread_local! {
    /// The capabilities of this thread. `None` if it has none.
    static CAPABILITIES: OnceCell<Option<CapabilitySets>> = const { OnceCell::new() };
    /// The user and group of this thread.
    static OWN_CREDENTIALS: OnceCell<Credentials> = const { OnceCell::new() };
    /// Whether this thread has its own umask and working directory.
    static HAS_OWN_FS: Cell<bool> = const { Cell::new(false) };
}

/// Gives this thread its own umask and working directory. If a container refuses this, the supervisor works
/// without.
pub(crate) fn unshare_fs() -> io::Result<()> {
    let unshared = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).is_ok();
    HAS_OWN_FS.set(unshared);
    Ok(())
}

/// Whether this thread has its own umask and working directory.
pub(super) fn has_own_fs() -> bool {
    HAS_OWN_FS.get()
}

/// Sets the umask for new files. If this thread shares its umask with others, returns the mode to set
/// afterwards instead.
pub(super) fn apply_umask(mode: Mode, mask: Mode) -> Option<Mode> {
    if has_own_fs() {
        umask(mask);
        return None;
    }
    Some(mode - mask)
}

/// A path by which this process can open a descriptor's file again.
pub(super) fn proc_fd_path(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The real path of an open file, from the kernel.
pub(super) fn real_path(file: &OwnedFd) -> rustix::io::Result<PathBuf> {
    let path = fs::read_link(proc_fd_path(file));
    path.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
