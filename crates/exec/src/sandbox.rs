//! The confinement of a command: plain data here, its enforcement in the submodules.
//!
//! # Theory of operation
//!
//! A session has a user and a network namespace, made by a shim and kept alive by descriptors
//! ([`namespaces`]). For each command, its shim joins these namespaces, creates a PID namespace and forks.
//! The child is the first process inside. It makes a mount namespace in which only the paths that the sandbox
//! names are writable ([`mounts`]), drops all the privileges that this took ([`privileges`]), restricts
//! itself with Landlock ([`landlock`]) and a seccomp filter ([`seccomp`]), and starts the shell. The shim
//! stays outside, where no command sees it: when it kills that first process, or dies itself, the kernel
//! kills everything in the namespace.
//!
//! The filter stops system calls that change files by name and those that connect sockets. The
//! [supervisor](crate::supervise) performs them, after it has asked the command's [`crate::Guard`].
//!
//! Where a system does not allow us to make namespaces, its bubblewrap may make the same mount layout
//! ([`bubblewrap`]). Where that is not possible either, Landlock and the filter do what they can. [`level`]
//! describes what each level lacks. Nothing is ever weakened silently: the runtime requests a level that it
//! has probed before, and a shim that cannot provide it starts nothing.

pub(crate) mod bubblewrap;
mod landlock;
pub(crate) mod level;
mod mounts;
pub(crate) mod namespaces;
pub(crate) mod network_namespace;
mod privileges;
mod raw_syscalls;
mod seccomp;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits::{Amount, Limits};
use crate::path_encoding;
use crate::path_set::PathSet;
use crate::setup_error::{SetupError, context};
use crate::sock_diag::open_sock_diag;

use self::bubblewrap::BwrapChecks;
pub(crate) use self::landlock::ReusedRules;
use self::level::Level;
use self::namespaces::SessionNamespaces;
pub use self::raw_syscalls::has_no_writer;
pub(crate) use self::raw_syscalls::{
    Forked, Notification, add_descriptor, bind, connect, continue_syscall, enable_sync_wake_up,
    fail_syscall, fork, fork_sibling, is_still_pending, read_kernel_log, receive_notification,
    return_value, start_in_terminal_session, start_process_session,
};
pub(crate) use self::seccomp::FAST_OPEN;

/// Paths at which commands with their own mount namespace see the temporary directory of their session.
pub const SESSION_TMP: [&str; 2] = ["/tmp", "/var/tmp"];

/// What a command may access. Paths that are not named here can be read, as far as the user can read them,
/// and not be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Writable directories or files. Each must exist, and be the same file as when it was opened.
    pub writable: Vec<PinnedPath>,
    /// Read-only paths, also beneath writable, hidden or private ones.
    pub read_only: Vec<PinnedPath>,
    /// Hidden paths: an empty directory or an unreadable file takes their place. Missing paths are skipped.
    pub hidden: PathSet,
    /// Paths that show other files. Needs a mount namespace.
    pub replaced: Vec<Replacement>,
    /// The directory of the session that its commands see as `/tmp`.
    #[serde(with = "path_encoding::path")]
    pub tmp: PathBuf,
    /// Whether the [`crate::Guard`] is asked about each file that is opened for reading. This costs time.
    pub supervise_reads: bool,
    /// The network access of a command.
    pub network: Network,
    /// The resource limits of a command.
    pub limits: Limits,
}

impl Sandbox {
    /// A sandbox without writable paths, for probing what a system supports.
    pub(crate) fn read_only(network: Network) -> Sandbox {
        Sandbox {
            writable: Vec::new(),
            read_only: Vec::new(),
            hidden: PathSet::default(),
            replaced: Vec::new(),
            tmp: PathBuf::from("/tmp"),
            supervise_reads: false,
            network,
            // The directory is the system's.
            limits: Limits { tmp_size: Amount::Unlimited, ..Limits::DEFAULT },
        }
    }
}

/// A path and the identity of its file. A command never gets another file at this path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedPath {
    /// The real path.
    #[serde(with = "path_encoding::path")]
    pub path: PathBuf,
    /// The device and the inode.
    pub identity: (u64, u64),
}

impl PinnedPath {
    /// Pins the file that is at this path now. Fails if there is none.
    pub fn of(path: impl Into<PathBuf>) -> io::Result<PinnedPath> {
        let path = path.into();
        let about = std::fs::metadata(&path)?;
        Ok(PinnedPath { identity: (about.dev(), about.ino()), path })
    }
}

/// A path at which a command sees another file or directory, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The real path that is replaced.
    #[serde(with = "path_encoding::path")]
    pub path: PathBuf,
    /// What the command sees there.
    pub by: PinnedPath,
}

/// The network access of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Only commands of the same session, on a loopback of their own.
    None,
    /// Besides these, hosts outside that the [`crate::Gateway`] of the session allows.
    List,
    /// Everything that the user can reach.
    All,
}

impl Network {
    /// Whether commands share no network with programs outside.
    pub fn is_private(self) -> bool {
        self != Network::All
    }
}

/// A sandbox and the level at which it is enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    pub(crate) sandbox: Sandbox,
    pub(crate) level: Level,
    /// The newest Landlock version to use.
    pub(crate) max_landlock: i64,
    /// The port of the only server that a command without namespaces may connect to, with [`Network::List`].
    pub(crate) proxy_port: Option<u16>,
}

impl Confinement {
    /// The shim's part, before it forks: its children will be in the session's namespaces. `rules` are Landlock rules for
    /// what surrounds hidden paths.
    pub(crate) fn prepare(
        self,
        namespaces: Option<&SessionNamespaces>,
        rules: Option<OwnedFd>,
    ) -> Result<Prepared, SetupError> {
        if self.level == Level::Namespaces {
            let missing = Err(io::Error::from_raw_os_error(libc::EBADF));
            context("open the session's namespaces", namespaces.map_or(missing, Ok))?
                .join(self.sandbox.network)?;
        }
        Ok(Prepared { confinement: self, rules })
    }

    /// The same with only the hidden paths that exist now.
    pub(crate) fn looked_up(&self) -> Confinement {
        let hidden = self.sandbox.hidden.found();
        Confinement { sandbox: Sandbox { hidden, ..self.sandbox.clone() }, ..*self }
    }

    /// The roots and caches, which are readable as a whole.
    pub(crate) fn readable_roots(&self) -> impl Iterator<Item = &Path> {
        let Sandbox { writable, read_only, .. } = &self.sandbox;
        writable.iter().chain(read_only).map(|pinned| pinned.path.as_path())
    }

    /// The paths that the command may write.
    pub(crate) fn writable_paths(&self) -> impl Iterator<Item = &Path> {
        self.sandbox.writable.iter().map(|pinned| pinned.path.as_path())
    }
}

/// Limits this process and its children, which something else confines.
pub(crate) fn limit_without_sandbox(limits: &Limits) -> Result<(), SetupError> {
    privileges::raise_oom_score();
    privileges::limit_memory_and_files(limits)?;
    privileges::forbid_core_files_and_new_privileges()
}

/// A confinement that the next child enters.
#[derive(Debug)]
pub(crate) struct Prepared {
    confinement: Confinement,
    /// Other commands use these Landlock rules, too. The command must not get this descriptor: it could add rules.
    rules: Option<OwnedFd>,
}

/// The descriptors that the supervisor needs of a confined process.
#[derive(Debug)]
pub(crate) struct Confined {
    /// The seccomp listener.
    pub(crate) listener: OwnedFd,
    /// A `sock_diag` socket of the command's network namespace, if it could be opened.
    pub(crate) sockets: Option<OwnedFd>,
    /// Sockets for the gateway, if the network namespace is the command's own.
    pub(crate) network: Vec<OwnedFd>,
}

impl Prepared {
    /// The child's part: all steps, in the order in which each is still permitted.
    pub(crate) fn enter(self) -> Result<Confined, SetupError> {
        let Prepared { confinement, rules } = self;
        let sandbox = &confinement.sandbox;
        privileges::raise_oom_score();
        privileges::limit_memory_and_files(&sandbox.limits)?;
        if confinement.level == Level::Namespaces {
            privileges::limit_processes(sandbox.limits.processes)?;
            privileges::start_pids_at_random(sandbox.limits.processes);
            mounts::build(sandbox)?;
        }
        confinement.restrict_process(rules)
    }
}

impl Confinement {
    /// The part of the first process inside bubblewrap.
    pub(crate) fn enter_in_bubblewrap(&self, inside: &BwrapChecks) -> Result<Confined, SetupError> {
        privileges::raise_oom_score();
        privileges::limit_memory_and_files(&self.sandbox.limits)?;
        privileges::set_nproc_limit(self.sandbox.limits.processes)?;
        inside.verify()?;
        let network = if self.sandbox.network == Network::List {
            let made = network_namespace::make_sockets(network_namespace::COMMAND_SOCKETS);
            context("make sockets for hosts", made)?
        } else {
            Vec::new()
        };
        Ok(Confined { network, ..self.restrict_process(None)? })
    }

    /// The steps that are the same with and without namespaces. They are irreversible.
    fn restrict_process(&self, rules: Option<OwnedFd>) -> Result<Confined, SetupError> {
        privileges::drop_privileges()?;
        let sockets = open_sock_diag().ok();
        if self.level >= Level::Landlock {
            landlock::restrict(self, rules)?;
        }
        let listener = seccomp::confine(self)?;
        Ok(Confined { listener, sockets, network: Vec::new() })
    }
}
