//! The levels of confinement, and what each of them lacks.

use std::fmt;

use rustix::process::geteuid;
use rustix::system::uname;
use serde::{Deserialize, Serialize};

use super::{bubblewrap, landlock};

/// The mechanisms that confine a command, from none to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// No mechanism.
    Nothing,
    /// A seccomp filter denies system calls that no command needs.
    Seccomp,
    /// A seccomp filter, and Landlock rules for opening files.
    Landlock,
    /// All of `Landlock`, and namespaces for files, processes and the network, made by the system's
    /// bubblewrap, where only that may make them.
    Bubblewrap,
    /// All of `Landlock`, and namespaces that we make ourselves.
    Namespaces,
}

impl Level {
    /// All levels, highest first.
    pub(crate) const ALL: [Level; 5] =
        [Level::Namespaces, Level::Bubblewrap, Level::Landlock, Level::Seccomp, Level::Nothing];

    /// The number of the level, from 0 to 4.
    pub fn number(self) -> u8 {
        match self {
            Level::Nothing => 0,
            Level::Seccomp => 1,
            Level::Landlock => 2,
            Level::Bubblewrap => 3,
            Level::Namespaces => 4,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Nothing => "nothing",
            Level::Seccomp => "seccomp",
            Level::Landlock => "landlock",
            Level::Bubblewrap => "bubblewrap",
            Level::Namespaces => "namespaces",
        }
    }

    /// Whether a command has its own namespaces for files, processes and the network.
    pub fn has_namespaces(self) -> bool {
        self >= Level::Bubblewrap
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Nothing => "commands are not confined",
            Level::Seccomp => "a system call filter",
            Level::Landlock => "Landlock and a system call filter",
            Level::Bubblewrap => "bubblewrap namespaces, Landlock and a system call filter",
            Level::Namespaces => "namespaces, Landlock and a system call filter",
        })
    }
}

/// The confinement that this system supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The highest level at which a command ran.
    pub level: Level,
    /// Whether commands without namespaces can be restricted to connections to one port.
    pub can_restrict_tcp: bool,
    /// The protections that are missing, each as a sentence.
    pub missing: Vec<String>,
    /// Why each higher level is not available.
    pub reasons: Vec<String>,
}

impl SandboxSupport {
    /// `landlock` is the newest version to use.
    pub(crate) fn new(level: Level, landlock: i64, reasons: Vec<String>) -> SandboxSupport {
        let landlock = landlock::version().min(landlock);
        SandboxSupport {
            level,
            can_restrict_tcp: level >= Level::Landlock && landlock >= landlock::TCP_VERSION,
            missing: missing(level, landlock),
            reasons,
        }
    }
}

fn missing(level: Level, landlock: i64) -> Vec<String> {
    let mut missing: Vec<&str> = vec![
        "The memory limit of a command is measured five times a second, without a cgroup: a command can exceed it for a moment.",
    ];
    if level.has_namespaces() {
        if landlock == 0 {
            missing.push("Landlock is not available: only mounts protect files.");
        }
        if level == Level::Bubblewrap {
            missing.extend(missing_in_bubblewrap());
        } else if geteuid().is_root() && !has_own_process_limit() {
            missing.push(
                "The number of processes is not limited: for root, the limit needs Linux 6.14.",
            );
        }
        return missing.into_iter().map(str::to_owned).collect();
    }
    missing.extend([
        "Commands see other processes of the same user. The number of processes is not limited.",
        "A process that detaches itself may survive its command.",
        "While the network is off, there is no loopback and there are no local sockets.",
    ]);
    if level == Level::Landlock {
        missing.extend([
            "Commands can change the owner and the timestamps of files outside the workspace.",
            "Commands can list hidden directories, and read hidden files inside the workspace.",
            "/tmp is the system's and read-only. The session's directory is $TMPDIR.",
        ]);
        if landlock < landlock::SCOPES_VERSION {
            missing.push("Commands can send signals to other processes of the same user.");
        }
    } else {
        missing.push("Commands can read and write files outside the workspace and send signals, like any program of the user.");
    }
    if level == Level::Nothing {
        missing.push("System calls are not filtered. The network is open.");
    }
    missing.into_iter().map(str::to_owned).collect()
}

/// The protections that namespaces of bubblewrap lack, compared to our own.
fn missing_in_bubblewrap() -> Vec<&'static str> {
    let mut missing = vec![
        "While the network is off, each command has its own loopback: other commands cannot reach its servers.",
    ];
    if geteuid().is_root() {
        missing.push("The number of processes is not limited: for root, the limit needs level 4.");
    } else if bubblewrap::find().is_some_and(|program| bubblewrap::is_setuid(&program)) {
        missing.push("The limit on processes counts all processes of the user.");
    }
    missing
}

/// Whether PID namespaces have their own process limit. On older kernels, setting it changes the whole
/// system.
pub(super) fn has_own_process_limit() -> bool {
    let release = uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6, 14),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_level_misses_less() {
        let lacks = |level| missing(level, 7).len();
        assert!(lacks(Level::Namespaces) < lacks(Level::Bubblewrap));
        assert!(lacks(Level::Bubblewrap) < lacks(Level::Landlock));
        assert!(lacks(Level::Seccomp) < lacks(Level::Nothing));
        assert!(missing(Level::Landlock, 7).len() < missing(Level::Landlock, 1).len());
        assert!(Level::ALL.is_sorted_by(|one, next| one > next));
    }
}
