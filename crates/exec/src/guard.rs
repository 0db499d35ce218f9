//! Decides what a command may do to a file, before it is done.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::refusal::Unwritable;

/// Decides about each change that a command is about to make. One thread asks, for all commands; the call
/// of the command waits for the answer.
pub trait Guard: Send + Sync + fmt::Debug {
    /// Decides about one call. A rename has two accesses or, if it exchanges two names, four; all others
    /// have one or two. If the answer allows the call, it is made next. `program` tells which program makes it,
    /// as it says itself.
    fn decide(
        &self,
        accesses: &[FileAccess],
        program: &dyn Fn() -> Option<Program>,
    ) -> GuardVerdict;

    /// Judges the content that a file is about to have, after [`Verdict::Review`] or [`Verdict::Renew`]. If
    /// `is_new`, content that is there already counts for nothing.
    fn review(&self, path: &Path, content: &[u8], is_new: bool) -> Result<(), RefusedContent>;

    /// Decides whether a file may be read. It is asked only if [`crate::Sandbox::supervise_reads`] is set.
    fn may_read(&self, path: &Path) -> bool;

    /// A change could not be supervised, so that it is not recorded.
    fn unseen(&self, why: &io::Error);

    /// No process of the command is left.
    fn over(&self);
}

/// The program that makes a call, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file that it was started from.
    pub path: PathBuf,
    /// Its arguments, the first of which is its name.
    pub arguments: Vec<OsString>,
}

/// A content that a file must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedContent {
    /// Why.
    pub why: Unwritable,
    /// The content and the mode that the file gets if the command has removed it.
    pub instead: Option<(Vec<u8>, u32)>,
}

/// One file that a call is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// The real path as the command sees it: of the file, or of where it would be.
    pub path: PathBuf,
    /// What is there now; nothing, if no file has this name.
    pub kind: Option<NodeKind>,
    /// What the call does.
    pub action: FileAction,
}

/// What a call does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAction {
    /// Changes the content of a file that is there, or opens it so that it can be changed.
    Write,
    /// Makes a new name.
    Create(NodeKind),
    /// Removes the name.
    Remove,
    /// Renames what is there to another name.
    RenameFrom,
    /// Gives this name to something of this kind, in the place of what is there.
    RenameTo(NodeKind),
    /// Gives another name to the same file.
    Link,
    /// Changes the mode or an extended attribute, such as an access control list.
    ChangeMode,
}

/// What kind of file a name has.
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

/// The answer of a [`Guard`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardVerdict {
    /// The call is made.
    Allow,
    /// The call fails.
    Refuse {
        /// For which access.
        access: usize,
        /// Why.
        why: Unwritable,
    },
    /// The content decides: [`Guard::review`] is asked when it is complete, and until then the name has its
    /// old content. It is for regular files that are written or renamed to their name.
    Review,
    /// The call is made after these files were reviewed and replaced by copies. Those that are not there are
    /// passed over.
    Renew(Vec<PathBuf>),
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

    fn unseen(&self, _: &io::Error) {}

    fn over(&self) {}
}
