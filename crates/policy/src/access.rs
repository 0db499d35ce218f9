//! The accesses that a call declares.

use std::path::{Path, PathBuf};

use crate::contacted_hosts::target;

/// An access that a call declares before it runs.
///
/// A tool declares requested paths. The core crate resolves them, so a policy sees real paths.
/// An access to a directory covers everything beneath it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads a file, or a directory and everything beneath it.
    Read(PathBuf),
    /// Creates, changes, moves or deletes a path. Includes reading it.
    Write(PathBuf),
    /// Changes files of the workspace that are not known before the call runs.
    WriteAny,
    /// Runs this script in a shell. Without a sandbox it can do whatever the user can.
    Command(String),
    /// Connects to a port of a host, as a command does while it runs.
    Connect(String, u16),
    /// Acts on something other than workspace files: a service, a machine, a person. The text is shown to
    /// the approver.
    Reach(String),
}

/// The kind of an [`Access`]. Profiles decide by effect, and approvals can cover an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Acts outside the workspace.
    Reach,
    /// Runs a command.
    Command,
}

impl Access {
    /// The effect of this access.
    pub fn effect(&self) -> Effect {
        match self {
            Access::Read(_) => Effect::Read,
            Access::Write(_) | Access::WriteAny => Effect::Write,
            Access::Reach(_) | Access::Connect(..) => Effect::Reach,
            Access::Command(_) => Effect::Command,
        }
    }

    /// The path; `None` for an access without one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Access::Read(path) | Access::Write(path) => Some(path),
            Access::WriteAny | Access::Reach(_) | Access::Connect(..) | Access::Command(_) => None,
        }
    }

    /// This access with another path. An access without a path is returned unchanged.
    #[must_use]
    pub fn with_path(&self, path: PathBuf) -> Access {
        match self {
            Access::Read(_) => Access::Read(path),
            Access::Write(_) => Access::Write(path),
            Access::WriteAny | Access::Reach(_) | Access::Connect(..) | Access::Command(_) => {
                self.clone()
            }
        }
    }
}

impl Effect {
    /// The name in records and approval requests.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Reach => "reach",
            Effect::Command => "command",
        }
    }
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Access::Read(path) => write!(f, "read {}", path.display()),
            Access::Write(path) => write!(f, "write {}", path.display()),
            Access::WriteAny => write!(f, "write files of the workspace"),
            Access::Connect(host, port) => write!(f, "connect to {}", target(host, Some(*port))),
            Access::Reach(what) => write!(f, "{what}"),
            Access::Command(script) => write!(f, "run {script}"),
        }
    }
}
