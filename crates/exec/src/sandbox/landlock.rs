//! Landlock: which files a command may open, held by the kernel whatever the mounts are. The second wall where
//! there are namespaces, and the first where there are none.
//!
//! A command may change no file at all by itself: the [supervisor](crate::supervise) performs those calls, and
//! is not held to these rules. So a call that changes files and is not supervised is refused, whatever it is.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::syscalls::{
    LandlockHandled, landlock_allow, landlock_restrict, landlock_ruleset, landlock_version,
};
use super::{Confinement, Network};
use crate::setup_error::{Failure, at, plainly};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIRECTORY: u64 = 1 << 3;
/// Making a local socket with a name.
const MAKE_SOCKET: u64 = 1 << 9;
/// Everything of the first version: besides those above, removing and making names.
const FIRST: u64 = (1 << 13) - 1;
/// Renaming and linking from one directory to another, since version 2.
const REFER: u64 = 1 << 13;
/// Since version 3.
const TRUNCATE: u64 = 1 << 14;
/// Commands to devices, since version 5.
const IOCTL_DEVICE: u64 = 1 << 15;

/// What of this can be said about a file that is no directory.
const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;

/// Connecting to abstract sockets outside, and signals to processes outside, since version 6.
const SCOPED: u64 = 0b11;

/// The version from which on `truncate` is a right of its own. Before, the supervisor keeps it out.
const WITH_TRUNCATE: i64 = 3;
/// The version from which on signals stay inside.
pub(super) const WITH_SCOPES: i64 = 6;

/// Without a view of its own, a command would find disks and the terminals of other programs there.
const DEVICES: &str = "/dev";
/// Those that a view has as well.
const ORDINARY_DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const SHARED_MEMORY: &str = "shm";

/// More directories than lead to what is hidden in any home; beyond, a hidden place stays hidden with
/// what lies around it.
const MAX_RULES: usize = 4096;

/// The version that this system has; zero, if none.
pub(super) fn version() -> i64 {
    landlock_version().unwrap_or(0)
}

/// Holds this process to a sandbox.
pub(super) fn restrict(confinement: &Confinement) -> Result<(), Failure> {
    let version = version().min(confinement.landlock);
    if version == 0 && confinement.level.has_view() {
        // The mounts are the first wall there, and hold alone.
        return Ok(());
    }
    // The commands of a session may talk to each other where nobody else is there.
    let alone = confinement.level.has_view() && confinement.sandbox.network == Network::None;
    let scoped = if alone { 0 } else { SCOPED };
    let rules = plainly("begin rules for Landlock", LandlockRules::new(version, scoped))?;
    if confinement.level.has_view() {
        // What is hidden is covered by a mount already.
        rules.allow(Path::new("/"), EXECUTE | READ_FILE | READ_DIRECTORY)?;
        for top in ["/tmp", "/var/tmp", "/run", "/dev/shm"] {
            rules.allow(Path::new(top), MAKE_SOCKET)?;
        }
        // A terminal is opened by the supervisor, and told how to behave by the command.
        rules.allow(Path::new(DEVICES), READ_FILE | IOCTL_DEVICE)?;
    } else {
        rules.allow(Path::new("/"), READ_DIRECTORY)?;
        let hidden = confinement.sandbox.hidden.iter();
        let mut hidden: Vec<PathBuf> =
            hidden.filter_map(|path| fs::canonicalize(path).ok()).collect();
        hidden.push(DEVICES.into());
        for path in around(&hidden) {
            rules.allow(&path, EXECUTE | READ_FILE | READ_DIRECTORY)?;
        }
        for device in ORDINARY_DEVICES {
            rules.allow(&Path::new(DEVICES).join(device), READ_FILE | IOCTL_DEVICE)?;
        }
        rules.allow(&Path::new(DEVICES).join(SHARED_MEMORY), READ_FILE)?;
        rules
            .allow(&confinement.sandbox.tmp, EXECUTE | READ_FILE | READ_DIRECTORY | MAKE_SOCKET)?;
        for path in confinement.written() {
            rules.allow(path, EXECUTE | READ_FILE | READ_DIRECTORY)?;
        }
    }
    plainly("hold it to Landlock's rules", landlock_restrict(&rules.set))
}

struct LandlockRules {
    set: OwnedFd,
    handled: u64,
}

impl LandlockRules {
    fn new(version: i64, scoped: u64) -> io::Result<LandlockRules> {
        let mut files = FIRST;
        for (since, right) in [(2, REFER), (WITH_TRUNCATE, TRUNCATE), (5, IOCTL_DEVICE)] {
            if version >= since {
                files |= right;
            }
        }
        // How much of the structure each version knows.
        let size = if version >= WITH_SCOPES {
            24
        } else if version >= 4 {
            16
        } else {
            8
        };
        let scoped = if version >= WITH_SCOPES { scoped } else { 0 };
        let handled = LandlockHandled { files, network: 0, scoped };
        Ok(LandlockRules { set: landlock_ruleset(handled, size)?, handled: files })
    }

    /// Allows something beneath a place; what is not there needs no rule.
    fn allow(&self, path: &Path, rights: u64) -> Result<(), Failure> {
        let place = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT | Errno::ACCESS | Errno::LOOP) => return Ok(()),
            opened => at("open", path, opened)?,
        };
        let kind = if path.is_dir() { u64::MAX } else { OF_A_FILE };
        let rights = rights & kind & self.handled;
        at("make a rule about", path, landlock_allow(&self.set, place, rights))
    }
}

/// Everything but what is hidden: a rule allows and never forbids, so the places beside each directory that
/// leads to something hidden are named, one by one.
fn around(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut allowed = Vec::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(directory) = open.pop() {
        if !hidden.iter().any(|path| path.starts_with(&directory)) {
            allowed.push(directory);
        } else if !hidden.contains(&directory) && allowed.len() + open.len() < MAX_RULES {
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            // A link leads to a place that is named, or hidden, itself.
            let own =
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            open.extend(own.map(|entry| entry.path()));
        }
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_every_older_version_are_understood() {
        for version in 1..=version() {
            let rules = LandlockRules::new(version, SCOPED).unwrap();
            rules.allow(Path::new("/"), u64::MAX).unwrap();
            rules.allow(Path::new("/dev/null"), u64::MAX).unwrap();
            rules.allow(Path::new("/nowhere"), u64::MAX).unwrap();
        }
    }

    #[test]
    fn everything_is_around_what_is_hidden_but_that() {
        let top = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(top.path()).unwrap();
        for name in ["a/secret/x", "a/open", "b"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        let found = around(&[top.join("a/secret")]);
        let here: Vec<_> = found.iter().filter(|path| path.starts_with(&top)).collect();
        let mut expected = [top.join("a/open"), top.join("b")];
        expected.sort();
        let mut here: Vec<PathBuf> = here.into_iter().cloned().collect();
        here.sort();
        assert_eq!(here, expected);
        assert!(found.contains(&PathBuf::from("/etc")) && !found.contains(&PathBuf::from("/")));
        assert_eq!(around(&[]), [PathBuf::from("/")]);
    }
}
