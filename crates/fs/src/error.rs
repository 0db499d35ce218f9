//! File system errors. Each contains the path.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::errno;

/// The kind of an error, for callers to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsErrorKind {
    /// The path is invalid: empty, too long, or with a NUL.
    Invalid,
    /// The path is outside all roots, or a symlink leads outside.
    Outside,
    /// The file is forbidden to tools, under any name.
    Forbidden,
    /// The path does not exist.
    NotFound,
    /// It is a directory, but a file is needed.
    IsDirectory,
    /// It is a FIFO, socket or device, which is never opened.
    NotRegular,
    /// It exceeds the given limit.
    TooLarge,
    /// The system denies access.
    Permission,
    /// The mode of a directory of this user does not permit writing. The path is that of the directory.
    DirectoryMode,
    /// The root, the file or the file system is read-only.
    ReadOnly,
    /// The file has changed since it was read.
    Stale,
    /// Another process holds the lock for too long.
    Busy,
    /// A change failed in the middle and could not be reverted. The next start completes the revert.
    Unsettled,
    /// Our own files have a format that this program does not support.
    Unsupported,
    /// Any other error of the system.
    Io,
}

/// An error about one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsError {
    kind: FsErrorKind,
    path: PathBuf,
    detail: String,
    outside: bool,
}

impl FsError {
    pub(crate) fn new(
        kind: FsErrorKind,
        path: impl Into<PathBuf>,
        detail: impl Into<String>,
    ) -> Self {
        FsError { kind, path: path.into(), detail: detail.into(), outside: false }
    }

    /// The error for a forbidden file.
    pub(crate) fn forbidden(path: impl Into<PathBuf>) -> Self {
        FsError::new(FsErrorKind::Forbidden, path, "is not accessible to these tools")
    }

    /// Marks the error as one that reveals something outside the workspace.
    pub(crate) fn found_outside(self) -> Self {
        FsError { outside: true, ..self }
    }

    /// The error for an errno.
    pub(crate) fn from_errno(path: impl Into<PathBuf>, cannot: &str, errno: Errno) -> Self {
        let kind = match errno {
            Errno::NOENT | Errno::NOTDIR => FsErrorKind::NotFound,
            Errno::ACCESS | Errno::PERM => FsErrorKind::Permission,
            Errno::ROFS => FsErrorKind::ReadOnly,
            // Every open refuses symlinks. One that appears after resolution means that the path was swapped.
            Errno::LOOP | Errno::XDEV => FsErrorKind::Stale,
            _ => FsErrorKind::Io,
        };
        FsError::new(kind, path, format!("{cannot}: {}", errno::describe(errno)))
    }

    /// The error for an I/O error of one of our own files.
    pub(crate) fn from_io(path: impl Into<PathBuf>, cannot: &str, error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => FsError::from_errno(path, cannot, Errno::from_raw_os_error(number)),
            None => FsError::new(FsErrorKind::Io, path, format!("{cannot}: {error}")),
        }
    }

    /// Marks the error as one after which a change is neither complete nor reverted.
    pub(crate) fn unsettled(self) -> Self {
        FsError { kind: FsErrorKind::Unsettled, ..self }
    }

    /// The kind.
    pub fn kind(&self) -> FsErrorKind {
        self.kind
    }

    /// Whether the error reveals something outside the workspace.
    pub fn reveals_outside(&self) -> bool {
        self.outside
    }

    /// The path, as far as it was resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The message without the path, such as `is a directory`. For an invalid path ([`FsErrorKind::Invalid`])
    /// it is a complete sentence.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FsErrorKind::Invalid => f.write_str(&self.detail),
            _ => write!(f, "{} {}", self.path.display(), self.detail),
        }
    }
}

impl std::error::Error for FsError {}
