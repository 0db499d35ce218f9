//! Landlock: which files a command may open, enforced by the kernel whatever the mounts are. It is the second
//! barrier where there are namespaces, and the first where there are none.
//!
//! A command may change no file at all by itself: the [supervisor](crate::supervise) performs those calls,
//! and is not restricted by these rules. So a call that changes files and is not supervised is denied,
//! whatever it is.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use super::Confinement;
use super::raw_syscalls::{
    LandlockRulesetAttr, landlock_add_port_rule, landlock_add_rule, landlock_create_ruleset,
    landlock_restrict_self, landlock_version,
};
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

/// More rules than the hidden paths of any home need. Beyond this limit, the surroundings of a hidden path
/// become unreadable with it.
const MAX_RULES: usize = 4096;

/// A larger directory stays readable as a whole if no hidden path is in it: a rule for each entry would take too long.
const MAX_ENTRIES: usize = 1000;

/// The version of this system. Zero if it has no Landlock.
pub(super) fn version() -> i64 {
    landlock_version().unwrap_or(0)
}

/// Restricts this process to a sandbox.
pub(super) fn restrict(confinement: &Confinement) -> Result<(), SetupError> {
    let version = version().min(confinement.max_landlock);
    if version == 0 && confinement.level.has_namespaces() {
        // The mounts are the first barrier, and are enough alone.
        return Ok(());
    }
    // The commands of a session may talk to each other if they share their network with nothing else.
    let has_private_network =
        confinement.level.has_namespaces() && confinement.sandbox.network.is_private();
    let scoped = if has_private_network { 0 } else { SCOPED };
    let tcp = if confinement.proxy_port.is_some() { TCP_RIGHTS } else { 0 };
    let rules = context("create Landlock rules", LandlockRules::new(version, scoped, tcp))?;
    if let Some(port) = confinement.proxy_port {
        // On an older version, the ruleset has no such right, and this fails.
        let allowed = landlock_add_port_rule(&rules.ruleset, port, CONNECT_TCP);
        context("allow connections to the proxy", allowed)?;
    }
    // Names can be listed everywhere. Files are read around hidden paths only, so that a file that takes the place of a
    // hidden one while the command runs cannot be read: it has no rule, and a mount over the old one is gone with it. The
    // same holds for a hidden file that appears.
    rules.allow(Path::new("/"), READ_DIRECTORY)?;
    let real = |path: &PathBuf| fs::canonicalize(path).ok();
    let mut hidden: Vec<PathBuf> = confinement.sandbox.hidden.iter().filter_map(real).collect();
    let incomplete = confinement.sandbox.hidden.incomplete_directories();
    let incomplete: Vec<PathBuf> = incomplete.iter().filter_map(real).collect();
    if !confinement.level.has_namespaces() {
        hidden.push(DEV.into());
    }
    for Entry { path, is_directory } in paths_around(&hidden, &incomplete) {
        rules.add(&path, EXECUTE | READ_FILE | READ_DIRECTORY, is_directory)?;
    }
    for path in confinement.readable_roots() {
        rules.allow(path, EXECUTE | READ_FILE | READ_DIRECTORY)?;
    }
    if confinement.level.has_namespaces() {
        // Other files are mounted there for the session.
        for top in ["/tmp", "/var/tmp", "/run", "/dev/shm"] {
            let rights = EXECUTE | READ_FILE | READ_DIRECTORY | MAKE_SOCKET;
            rules.allow(Path::new(top), rights)?;
        }
        // The supervisor opens a terminal, and the command configures it with `ioctl`.
        rules.allow(Path::new(DEV), READ_FILE | IOCTL_DEVICE)?;
    } else {
        for device in ORDINARY_DEVICES {
            rules.allow(&Path::new(DEV).join(device), READ_FILE | IOCTL_DEVICE)?;
        }
        rules.allow(&Path::new(DEV).join(SHARED_MEMORY), READ_FILE)?;
        rules
            .allow(&confinement.sandbox.tmp, EXECUTE | READ_FILE | READ_DIRECTORY | MAKE_SOCKET)?;
    }
    context("apply the Landlock rules", landlock_restrict_self(&rules.ruleset))
}

struct LandlockRules {
    ruleset: OwnedFd,
    handled: u64,
}

impl LandlockRules {
    /// Rights that the version does not have are left out.
    fn new(version: i64, scoped: u64, tcp: u64) -> io::Result<LandlockRules> {
        let mut files = V1_RIGHTS;
        for (since, right) in [(2, REFER), (TRUNCATE_VERSION, TRUNCATE), (5, IOCTL_DEVICE)] {
            if version >= since {
                files |= right;
            }
        }
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

    /// Allows rights beneath a path. A path that cannot be opened, such as a missing one or a broken mount, gets no rule.
    fn allow(&self, path: &Path, rights: u64) -> Result<(), SetupError> {
        self.add(path, rights, path.is_dir())
    }

    /// The same for a path of a known kind. It gets no rule if it is no longer of that kind.
    fn add(&self, path: &Path, rights: u64, is_directory: bool) -> Result<(), SetupError> {
        let (kind, possible) = if is_directory {
            (OFlags::DIRECTORY, u64::MAX)
        } else {
            (OFlags::empty(), FILE_RIGHTS)
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC | kind;
        let Ok(parent) = open(path, flags, Mode::empty()) else { return Ok(()) };
        match landlock_add_rule(&self.ruleset, parent, rights & possible & self.handled) {
            // A file of the kernel, such as a mounted namespace.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            added => path_context("add a Landlock rule for", path, added),
        }
    }
}

/// A file or directory.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    path: PathBuf,
    is_directory: bool,
}

/// All paths except hidden ones. Rules only allow and never deny, so the siblings of each directory on the
/// way to a hidden path are listed one by one, and the entries of the directories in which one may appear.
fn paths_around(hidden: &[PathBuf], incomplete: &[PathBuf]) -> Vec<Entry> {
    let (above_hidden, above_incomplete) = (at_or_above(hidden), at_or_above(incomplete));
    // All are normalized. Comparing paths by their components would take most of the time of a small command.
    let hidden: HashSet<&OsStr> = hidden.iter().map(|path| path.as_os_str()).collect();
    let mut allowed = Vec::new();
    let mut open = vec![Entry { path: "/".into(), is_directory: true }];
    while let Some(entry) = open.pop() {
        let path = entry.path.as_os_str();
        if hidden.contains(path) {
            continue;
        }
        let holds_hidden = above_hidden.contains(path);
        if !holds_hidden && !above_incomplete.contains(path) {
            allowed.push(entry);
        } else if allowed.len() + open.len() < MAX_RULES {
            let mut entries = entries(&entry.path);
            if holds_hidden || entries.len() <= MAX_ENTRIES {
                open.append(&mut entries);
            } else {
                allowed.push(entry);
            }
        }
    }
    allowed
}

/// The paths, and all directories above them.
fn at_or_above(paths: &[PathBuf]) -> HashSet<&OsStr> {
    let mut all = HashSet::new();
    for path in paths {
        for above in path.ancestors() {
            // Its own directories are there already.
            if !all.insert(above.as_os_str()) {
                break;
            }
        }
    }
    all
}

/// The entries of a directory, without symlinks: the target of a symlink is allowed or hidden by its own path.
fn entries(directory: &Path) -> Vec<Entry> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let kind = entry.file_type().ok()?;
        (!kind.is_symlink()).then(|| Entry { path: entry.path(), is_directory: kind.is_dir() })
    };
    entries.filter_map(of).collect()
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

    #[test]
    fn paths_around_cover_everything_except_hidden_paths() {
        let top = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(top.path()).unwrap();
        for name in ["a/secret/x", "a/open", "b", "d/e"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        fs::write(top.join("c"), "").unwrap();
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for Entry { path, is_directory } in paths_around(&[top.join("a/secret")], &[top.join("d")])
        {
            match path.strip_prefix(&top) {
                Ok(path) => here.push((path.to_owned(), is_directory)),
                Err(_) => elsewhere.push(path),
            }
        }
        here.sort();
        let expected = [("a/open", true), ("b", true), ("c", false), ("d/e", true)];
        assert_eq!(here, expected.map(|(path, is_directory)| (path.into(), is_directory)));
        assert!(elsewhere.contains(&"/etc".into()) && !elsewhere.contains(&"/".into()));
        assert_eq!(paths_around(&[], &[]), [Entry { path: "/".into(), is_directory: true }]);
    }
}
