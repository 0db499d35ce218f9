//! The interface that decides whether a command may change a file.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::refusal::Unwritable;

/// Decides about each file change of a command before it is made. A single thread asks for all commands, and
/// the system call waits for the decision.
pub trait Guard: Send + Sync + fmt::Debug {
    /// Decides about one system call. A rename has two accesses, or four if it exchanges two names; other
    /// calls have one or two. If the decision allows the call, it is made next. `program` returns the program
    /// that makes the call, as that program describes itself.
    fn decide(
        &self,
        accesses: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> GuardVerdict;

    /// Reviews the new content of a file, after [`GuardVerdict::Review`] or [`GuardVerdict::ReviewAndCopy`].
    /// If `is_new`, the existing content is not taken into account.
    fn review(&self, path: &Path, content: &[u8], is_new: bool) -> Result<(), RefusedContent>;

    /// Whether a file may be read. Only asked if [`crate::Sandbox::supervise_reads`] is set.
    fn may_read(&self, path: &Path) -> bool;

    /// Reports that a change could not be supervised and so is not recorded.
    fn supervision_failed(&self, why: &io::Error);

    /// Reports that all processes of the command have exited.
    fn finished(&self);
}

/// The program that makes a call, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its executable file.
    pub path: PathBuf,
    /// Its arguments, starting with its name.
    pub arguments: Vec<OsString>,
}

/// Content that a file must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedContent {
    /// The reason.
    pub why: Unwritable,
    /// The content and mode to restore if the command has removed the file.
    pub fallback: Option<(Vec<u8>, u32)>,
}

/// One file that a call is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// The real path in the command's view. The file need not exist.
    pub path: PathBuf,
    /// The kind of the existing file. `None` if the path does not exist.
    pub kind: Option<NodeKind>,
    /// What the call does to the file.
    pub action: FileAction,
}

/// What a call does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// Changes the content of an existing file, or opens it for writing.
    Write,
    /// Creates a file of this kind.
    Create(NodeKind),
    /// Removes the file.
    Remove,
    /// Renames the file to another path.
    RenameFrom,
    /// Renames a file of this kind to this path, replacing an existing file.
    RenameTo(NodeKind),
    /// Makes a hard link to the file.
    Link,
    /// Changes the mode or an extended attribute, such as an access control list.
    ChangeMode,
}

/// The kind of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, a socket or a device.
    Special,
}

/// The decision of a [`Guard`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardVerdict {
    /// The call is allowed.
    Allow,
    /// The call fails.
    Refuse {
        /// The index of the access that is denied.
        access: usize,
        /// The reason.
        why: Unwritable,
        /// The content and mode to restore at the path: the command has removed the file to write another.
        restore: Option<(Vec<u8>, u32)>,
    },
    /// The content decides: [`Guard::review`] is called when it is complete, and until then the path keeps
    /// its old content. Only for regular files that are written or are the target of a rename.
    Review,
    /// The call is allowed after these files were reviewed and replaced by copies. Missing files are skipped.
    ReviewAndCopy(Vec<PathBuf>),
}

/// A guard that allows everything.
#[derive(Debug, Clone, Copy)]
pub struct AllowAll;

impl Guard for AllowAll {
    fn decide(&self, _: &[FileAccess], _: &dyn Fn() -> Option<Program>) -> GuardVerdict {
        GuardVerdict::Allow
    }

    fn review(&self, _: &Path, _: &[u8], _: bool) -> Result<(), RefusedContent> {
        Ok(())
    }

    fn may_read(&self, _: &Path) -> bool {
        true
    }

    fn supervision_failed(&self, _: &io::Error) {}

    fn finished(&self) {}
}
