//! The levels of confinement, and what each of them lacks.

use std::fmt;

use rustix::process::geteuid;
use rustix::system::uname;

use super::{bubblewrap, landlock};

/// The mechanisms that confine a command, from none to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

    pub(crate) fn from_number(number: u64) -> Option<Level> {
        Level::ALL.into_iter().find(|level| u64::from(level.number()) == number)
    }

    /// Whether a command has its own namespaces for files, processes and the network.
    pub fn has_namespaces(self) -> bool {
        self >= Level::Bubblewrap
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Nothing => "nothing confines commands",
            Level::Seccomp => "a filter of system calls",
            Level::Landlock => "Landlock and a filter of system calls",
            Level::Bubblewrap => "bubblewrap's namespaces, Landlock and a filter of system calls",
            Level::Namespaces => "namespaces, Landlock and a filter of system calls",
        })
    }
}

/// The confinement that this system supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The highest level at which a command ran.
    pub level: Level,
    /// The protections that are missing, each as a sentence.
    pub missing: Vec<String>,
    /// Why each higher level is not available.
    pub reasons: Vec<String>,
}

impl SandboxSupport {
    /// `landlock` is the newest version to use.
    pub(crate) fn new(level: Level, landlock: i64, reasons: Vec<String>) -> SandboxSupport {
        SandboxSupport {
            level,
            missing: missing(level, landlock::version().min(landlock)),
            reasons,
        }
    }
}

fn missing(level: Level, landlock: i64) -> Vec<String> {
    let mut missing: Vec<&str> = vec!["The memory that a command takes is not limited."];
    if level.has_namespaces() {
        if landlock == 0 {
            missing.push("Landlock is not there: mounts are the only wall before files.");
        }
        if level == Level::Bubblewrap {
            missing.extend(missing_in_bubblewrap());
        } else if geteuid().is_root() && !has_own_process_limit() {
            missing
                .push("The number of processes is not limited: for root, that takes Linux 6.14.");
        }
        return missing.into_iter().map(str::to_owned).collect();
    }
    missing.extend([
        "Processes of other programs of the same user are seen, and the number of processes is not limited.",
        "What detaches itself from a command may survive it.",
        "There is no network at all where the network is off: no loopback, and no local sockets.",
    ]);
    if level == Level::Landlock {
        missing.extend([
            "The owner and the times of files outside can be changed.",
            "The names in hidden directories can be listed, and what is hidden within the workspace be read.",
            "/tmp is the system's, and not written: $TMPDIR is the session's.",
        ]);
        if landlock < landlock::SCOPES_VERSION {
            missing.push("Signals can be sent to other programs of the same user.");
        }
    } else {
        missing.push("Files outside can be read and written, and signals be sent, as by any program of the user.");
    }
    if level == Level::Nothing {
        missing.push("System calls are not filtered, and the network is open.");
    }
    missing.into_iter().map(str::to_owned).collect()
}

/// The protections that namespaces of bubblewrap lack, compared to our own.
fn missing_in_bubblewrap() -> Vec<&'static str> {
    let mut missing = vec![
        "While the network is off, each command has a loopback of its own: what one serves there, no other reaches.",
    ];
    if geteuid().is_root() {
        missing.push(
            "The number of processes is not limited: for root, that takes namespaces of our own.",
        );
    } else if bubblewrap::find().is_some_and(|program| bubblewrap::is_setuid(&program)) {
        missing.push("The limit on processes counts all that the user has.");
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
        assert!(
            Level::ALL
                .iter()
                .all(|level| Level::from_number(level.number().into()) == Some(*level))
        );
    }
}
