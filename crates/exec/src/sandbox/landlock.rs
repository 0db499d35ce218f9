//! Landlock: which files a command may open, enforced by the kernel whatever the mounts are. It is the second
//! barrier where there are namespaces, and the first where there are none.
//!
//! A command may change no file at all by itself: the [supervisor](crate::supervise) performs those calls,
//! and is not restricted by these rules. So a call that changes files and is not supervised is denied,
//! whatever it is.

mod reused_rules;
mod surroundings;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

pub(crate) use self::reused_rules::ReusedRules;

use self::surroundings::paths_around;
use super::mounts::hide_and_pin::open_no_symlinks;
use super::raw_syscalls::{
    LandlockRulesetAttr, landlock_add_port_rule, landlock_add_rule, landlock_create_ruleset,
    landlock_restrict_self, landlock_version,
};
use super::{Confinement, mounts};
use crate::setup_error::{SetupError, context, path_context};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
/// Creating a Unix socket with a path.
const MAKE_SOCKET: u64 = 1 << 9;
/// All rights of version 1: the above, and removing and creating directory entries.
const V1_RIGHTS: u64 = (1 << 13) - 1;
/// Renaming and linking between directories, since version 2.
const REFER: u64 = 1 << 13;
/// Since version 3.
const TRUNCATE: u64 = 1 << 14;
/// `ioctl` on devices, since version 5.
const IOCTL_DEVICE: u64 = 1 << 15;

/// Reading and running everything beneath a directory.
const READ: u64 = EXECUTE | READ_FILE | READ_DIRECTORY;

/// The rights that apply to files other than directories.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;

/// Connecting to abstract sockets outside, and signalling processes outside, since version 6.
const SCOPED: u64 = 0b11;

/// Connecting a TCP socket.
const CONNECT_TCP: u64 = 1 << 1;
/// Binding a TCP socket, and connecting one.
const TCP_RIGHTS: u64 = 1 | CONNECT_TCP;

/// The first version with a right for `truncate`. In older versions only the supervisor denies it.
const TRUNCATE_VERSION: i64 = 3;
/// The first version with rights for TCP.
pub(super) const TCP_VERSION: i64 = 4;
/// The first version that confines signals.
pub(super) const SCOPES_VERSION: i64 = 6;

/// Without namespaces, a command would see disks and the terminals of other programs here.
const DEV: &str = "/dev";
/// The devices that a command with namespaces has, too.
const ORDINARY_DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const SHARED_MEMORY: &str = "shm";
/// Shows the processes of a command.
const PROC: &str = "/proc";
/// The directories in which a command with namespaces sees files of its session only.
const SESSION_DIRECTORIES: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// The version of this system. Zero if it has no Landlock.
pub(super) fn version() -> i64 {
    landlock_version().unwrap_or(0)
}

/// The version to use for a sandbox. `None` if it is not restricted by Landlock.
fn version_for(confinement: &Confinement) -> Option<i64> {
    let version = version().min(confinement.max_landlock);
    // The mounts are the first barrier, and are enough alone.
    (version > 0 || !confinement.level.has_namespaces()).then_some(version)
}

/// Restricts this process to a sandbox. `around` are rules for the surroundings of hidden paths that other commands
/// use, too.
pub(super) fn restrict(
    confinement: &Confinement,
    around: Option<OwnedFd>,
) -> Result<(), SetupError> {
    let Some(version) = version_for(confinement) else { return Ok(()) };
    let rules = match around {
        Some(ruleset) => LandlockRules { ruleset, handled: file_rights(version) },
        None => {
            let HiddenPaths { existing, incomplete } = HiddenPaths::of(confinement);
            let around = paths_around(&existing, &incomplete);
            LandlockRules::for_paths(confinement, version, &around.paths)?
        }
    };
    if let Some(port) = confinement.proxy_port {
        // On an older version, the ruleset has no such right, and this fails.
        let allowed = landlock_add_port_rule(&rules.ruleset, port, CONNECT_TCP);
        context("allow connections to the proxy", allowed)?;
    }
    for path in confinement.readable_roots() {
        rules.allow(path, READ)?;
    }
    if confinement.level.has_namespaces() {
        rules.allow(Path::new(PROC), READ)?;
        // Other files are mounted there for the session.
        for top in SESSION_DIRECTORIES {
            rules.allow(Path::new(top), READ | MAKE_SOCKET)?;
        }
        // The supervisor opens a terminal, and the command configures it with `ioctl`.
        rules.allow(Path::new(DEV), READ | IOCTL_DEVICE)?;
        for path in mounts::layout::replaced_files(&confinement.sandbox) {
            rules.allow(&path, READ)?;
        }
    } else {
        for device in ORDINARY_DEVICES {
            rules.allow(&Path::new(DEV).join(device), READ_FILE | IOCTL_DEVICE)?;
        }
        rules.allow(&Path::new(DEV).join(SHARED_MEMORY), READ_FILE)?;
        rules.allow(&confinement.sandbox.tmp, READ | MAKE_SOCKET)?;
    }
    context("apply the Landlock rules", landlock_restrict_self(&rules.ruleset))
}

/// What a command can do outside its own sockets and processes.
fn scoped(confinement: &Confinement) -> u64 {
    // The commands of a session may talk to each other if they share their network with nothing else.
    let has_private_network =
        confinement.level.has_namespaces() && confinement.sandbox.network.is_private();
    if has_private_network { 0 } else { SCOPED }
}

/// The rights to files that a version knows.
fn file_rights(version: i64) -> u64 {
    let newer = [(2, REFER), (TRUNCATE_VERSION, TRUNCATE), (5, IOCTL_DEVICE)];
    let known = newer.into_iter().filter(|(since, _)| version >= *since);
    known.fold(V1_RIGHTS, |rights, (_, right)| rights | right)
}

/// The real paths of hidden files, and of the directories in which others may appear.
#[derive(Debug, PartialEq, Eq)]
struct HiddenPaths {
    existing: Vec<PathBuf>,
    incomplete: Vec<PathBuf>,
}

impl HiddenPaths {
    fn of(confinement: &Confinement) -> HiddenPaths {
        let real = |path: &Path| fs::canonicalize(path).ok();
        let hidden = &confinement.sandbox.hidden;
        // Roots are readable as a whole.
        let is_outside =
            |path: &PathBuf| !confinement.readable_roots().any(|root| path.starts_with(root));
        let real_outside = |path: &Path| real(path).filter(is_outside);
        let mut existing: Vec<PathBuf> = hidden.iter().filter_map(real_outside).collect();
        let incomplete = hidden.incomplete_directories();
        let incomplete = incomplete.iter().map(PathBuf::as_path);
        let mut incomplete: Vec<PathBuf> = incomplete.filter_map(real_outside).collect();
        if confinement.level.has_namespaces() {
            // Commands see other files there, which have their own rules.
            let covered = SESSION_DIRECTORIES.into_iter().chain([DEV, PROC]);
            let covered: Vec<PathBuf> =
                covered.filter_map(|top| fs::canonicalize(top).ok()).collect();
            for paths in [&mut existing, &mut incomplete] {
                paths.retain(|path| !covered.iter().any(|top| path.starts_with(top)));
            }
            existing.extend(covered);
        } else {
            existing.push(DEV.into());
        }
        HiddenPaths { existing, incomplete }
    }
}

struct LandlockRules {
    ruleset: OwnedFd,
    handled: u64,
}

impl LandlockRules {
    /// Rules for the paths around hidden ones. Names can be listed everywhere. Files are read around hidden paths only, so
    /// that a file that takes the place of a hidden one while the command runs cannot be read: it has no rule, and a mount
    /// over the old one is gone with it. The same holds for a hidden file that appears.
    fn for_paths(
        confinement: &Confinement,
        version: i64,
        around: &[PathBuf],
    ) -> Result<LandlockRules, SetupError> {
        let tcp = if confinement.proxy_port.is_some() { TCP_RIGHTS } else { 0 };
        let rules = LandlockRules::new(version, scoped(confinement), tcp);
        let rules = context("create Landlock rules", rules)?;
        rules.allow(Path::new("/"), READ_DIRECTORY)?;
        for path in around {
            // Another program may have put a symlink there.
            rules.add(path, READ, open_no_symlinks(path))?;
        }
        Ok(rules)
    }

    /// Rights that the version does not have are left out.
    fn new(version: i64, scoped: u64, tcp: u64) -> io::Result<LandlockRules> {
        let files = file_rights(version);
        // The size of the structure in each version.
        let size = if version >= SCOPES_VERSION {
            24
        } else if version >= TCP_VERSION {
            16
        } else {
            8
        };
        let scoped = if version >= SCOPES_VERSION { scoped } else { 0 };
        let network = if version >= TCP_VERSION { tcp } else { 0 };
        let handled = LandlockRulesetAttr { files, network, scoped };
        Ok(LandlockRules { ruleset: landlock_create_ruleset(handled, size)?, handled: files })
    }

    /// Allows rights beneath a path, or beneath the target of a symlink.
    fn allow(&self, path: &Path, rights: u64) -> Result<(), SetupError> {
        self.add(path, rights, open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()))
    }

    /// Allows rights beneath a file or directory, opened without access: that starts no automount, which could wait for a
    /// server for ever. One that cannot be opened, such as a missing one or a broken mount, gets no rule.
    fn add(
        &self,
        path: &Path,
        rights: u64,
        opened: rustix::io::Result<OwnedFd>,
    ) -> Result<(), SetupError> {
        let Ok(file) = opened else { return Ok(()) };
        let Ok(about) = fstat(&file) else { return Ok(()) };
        let is_directory = FileType::from_raw_mode(about.st_mode) == FileType::Directory;
        let possible = if is_directory { u64::MAX } else { FILE_RIGHTS };
        match landlock_add_rule(&self.ruleset, file, rights & possible & self.handled) {
            // A file of the kernel, such as a mounted namespace.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            added => path_context("add a Landlock rule for", path, added),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_every_older_version_are_accepted() {
        for version in 1..=version() {
            let rules = LandlockRules::new(version, SCOPED, TCP_RIGHTS).unwrap();
            rules.allow(Path::new("/"), u64::MAX).unwrap();
            rules.allow(Path::new("/dev/null"), u64::MAX).unwrap();
            rules.allow(Path::new("/nowhere"), u64::MAX).unwrap();
            let port = landlock_add_port_rule(&rules.ruleset, 80, CONNECT_TCP);
            assert_eq!(port.is_ok(), version >= TCP_VERSION, "{version}");
        }
    }
}
