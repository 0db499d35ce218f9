//! What a call says it will touch.

use std::path::{Path, PathBuf};

/// One thing that a call touches, said before it touches anything.
///
/// A tool gives paths as it was given them; the trunk resolves them, and a policy sees real ones.
/// An access to a directory covers what is beneath it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Access {
    /// Looks at a file, or at a directory and what is beneath it.
    Read(PathBuf),
    /// Creates, changes, moves or deletes; reading the same thing is part of it.
    Write(PathBuf),
    /// Changes files of the workspace that only the call itself finds out.
    WriteAny,
    /// Has a shell run this script, which may do whatever the user can where nothing confines it.
    Command(String),
    /// Acts on something that is no file of the workspace: a service, a machine, a person. The words
    /// are shown to whoever is asked.
    Reach(String),
}

/// The kind of an [`Access`]: what profiles decide on and what an answer is remembered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Nothing is changed.
    Read,
    /// Files of the workspace are changed.
    Write,
    /// Something outside the workspace is touched.
    Reach,
    /// A command is run.
    Command,
}

impl Access {
    /// Its kind.
    pub fn effect(&self) -> Effect {
        match self {
            Access::Read(_) => Effect::Read,
            Access::Write(_) | Access::WriteAny => Effect::Write,
            Access::Reach(_) => Effect::Reach,
            Access::Command(_) => Effect::Command,
        }
    }

    /// The file or directory, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Access::Read(path) | Access::Write(path) => Some(path),
            Access::WriteAny | Access::Reach(_) | Access::Command(_) => None,
        }
    }

    /// The same access, to `path` instead, if it is one to a file.
    #[must_use]
    pub fn at(&self, path: PathBuf) -> Access {
        match self {
            Access::Read(_) => Access::Read(path),
            Access::Write(_) => Access::Write(path),
            Access::WriteAny | Access::Reach(_) | Access::Command(_) => self.clone(),
        }
    }
}

impl Effect {
    /// A word for records and questions.
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
            Access::Reach(what) => write!(f, "{what}"),
            Access::Command(script) => write!(f, "run {script}"),
        }
    }
}
