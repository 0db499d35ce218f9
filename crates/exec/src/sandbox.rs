//! What a command may see and touch: plain data here, and what holds it to that below.
//!
//! # Theory of operation
//!
//! A session has a *space*: a user and a network namespace, made by a keeper and held by descriptors
//! ([`space`]). For each command of the session, its keeper joins the space, begins a PID namespace and forks.
//! The child is its first process. It makes a mount namespace in which everything is read-only but what the
//! sandbox names ([`view`]), gives up every right that this took ([`privileges`]), puts Landlock
//! ([`landlock`]) and a filter of system calls ([`calls`]) in front of what is left, and starts the shell.
//! The keeper stays outside, where no command sees it: when it kills that first process, or dies itself,
//! the kernel kills everything in the namespace.
//!
//! Calls that change files by name, and those that connect sockets, are stopped by the filter and performed
//! by the [supervisor](crate::supervise), which asks the command's [`crate::Guard`] first.
//!
//! Where a system does not let us make namespaces, its own bubblewrap may make the same view
//! ([`bubblewrap`]); where that cannot either, Landlock and the filter do what they can; [`level`] says what
//! that is. Nothing is ever weakened silently: the runtime says which level it wants, having
//! tried it before, and a keeper that cannot give it starts nothing.

pub(crate) mod bubblewrap;
mod landlock;
pub(crate) mod level;
mod mounts;
pub(crate) mod namespaces;
mod privileges;
mod seccomp;
mod syscalls;
mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::setup_error::{Failure, plainly};
use crate::supervise::sock_diag::ask_here;

use self::bubblewrap::Inside;
use self::level::Level;
use self::namespaces::Space;
pub use self::syscalls::has_no_writer;
pub(crate) use self::syscalls::{
    Forked, Waiting, add_descriptor, answer_promptly, bind, connect, fork, let_fail, let_happen,
    let_return, still_waits, take_waiting,
};

/// Where commands that have a view of their own find the directory of their session.
pub const SESSION_TMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// What a command may see and touch. What is not named here can be read, as far as the user can, and not
/// be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// What may be written: directories, or single files. Each must be there, and be the same as when it was
    /// opened.
    pub writable: Vec<HeldPath>,
    /// What may be read only, wherever it lies: also within what is writable, hidden or private.
    pub read_only: Vec<HeldPath>,
    /// What is not seen: an empty directory or an unreadable file takes its place. Those that are not there
    /// are passed over.
    pub hidden: Vec<PathBuf>,
    /// A directory of the session that its commands find as `/tmp`.
    pub tmp: PathBuf,
    /// Whether the [`crate::Guard`] is asked about each file that is opened to be read. It costs time.
    pub supervise_reads: bool,
    /// Whom a command may talk to.
    pub network: Network,
    /// How much a command may take.
    pub limits: Limits,
}

impl Sandbox {
    /// One in which nothing is written: for trying what a system allows.
    pub(crate) fn read_only(network: Network) -> Sandbox {
        Sandbox {
            writable: Vec::new(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            tmp: PathBuf::from("/tmp"),
            supervise_reads: false,
            network,
            limits: Limits::DEFAULT,
        }
    }
}

/// A file or directory by its path, and by which one it is. A command never gets another one under this path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPath {
    /// Its real path.
    pub path: PathBuf,
    /// Its device, and its number there.
    pub identity: (u64, u64),
}

impl HeldPath {
    /// What has this path now.
    pub fn of(path: impl Into<PathBuf>) -> io::Result<HeldPath> {
        let path = path.into();
        let about = std::fs::metadata(&path)?;
        Ok(HeldPath { identity: (about.dev(), about.ino()), path })
    }
}

/// Whom a command may talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The commands of its own session, on the loopback of a network that has nothing else.
    None,
    /// Everybody whom the user can talk to.
    All,
}

/// How much a command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many processes and threads it may have at a time.
    pub processes: u32,
}

impl Limits {
    /// More than a large build on many cores has; a fork bomb is there in a moment, and stops.
    pub const DEFAULT: Limits = Limits { processes: 4096 };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// A sandbox, and how far this system can hold a command to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confinement {
    pub(crate) sandbox: Sandbox,
    pub(crate) level: Level,
    /// The newest version of Landlock that may be used.
    pub(crate) landlock: i64,
}

impl Confinement {
    /// The keeper's part, before it forks: from then on, its children are in the session's space.
    pub(crate) fn prepare(self, space: Option<&Space>) -> Result<Prepared, Failure> {
        if self.level == Level::Namespaces {
            let missing = Err(io::Error::from_raw_os_error(libc::EBADF));
            plainly("find the session's namespaces", space.map_or(missing, Ok))?
                .join(self.sandbox.network)?;
        }
        Ok(Prepared { confinement: self })
    }

    /// What a command writes to.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Path> {
        self.sandbox.writable.iter().map(|held| held.path.as_path())
    }
}

/// A confinement to be entered by the next child.
#[derive(Debug)]
pub(crate) struct Prepared {
    confinement: Confinement,
}

/// What there is to say of a confinement once this process is in it.
#[derive(Debug)]
pub(crate) struct Entered {
    /// Where calls wait for the supervisor.
    pub(crate) listener: OwnedFd,
    /// Where the kernel is asked for the sockets of the network in here, if it can be.
    pub(crate) sockets: Option<OwnedFd>,
}

impl Prepared {
    /// The child's part: everything, in the order in which each step is still allowed.
    pub(crate) fn enter(&self) -> Result<Entered, Failure> {
        let Prepared { confinement } = self;
        let sandbox = &confinement.sandbox;
        privileges::go_first();
        if confinement.level == Level::Namespaces {
            privileges::limit_processes(sandbox.limits.processes)?;
            mounts::make(sandbox)?;
        }
        confinement.close()
    }
}

impl Confinement {
    /// The part of the first process in a view of bubblewrap.
    pub(crate) fn enter_wrapped(&self, inside: &Inside) -> Result<Entered, Failure> {
        privileges::go_first();
        privileges::limit_users_processes(self.sandbox.limits.processes)?;
        inside.check()?;
        self.close()
    }

    /// What is the same with and without a view: from here on nothing more can be had.
    fn close(&self) -> Result<Entered, Failure> {
        privileges::give_up()?;
        let sockets = ask_here().ok();
        if self.level >= Level::Landlock {
            landlock::restrict(self)?;
        }
        let listener = seccomp::confine(self)?;
        Ok(Entered { listener, sockets })
    }
}
