//! What can go wrong with a file, always with its path.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::errno;

/// What went wrong, to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsErrorKind {
    /// The path is no path: empty, too long, with a NUL.
    Invalid,
    /// It lies outside every root, or a link leads there.
    Outside,
    /// It is closed to tools, under whatever name.
    Closed,
    /// There is nothing at the path.
    NotFound,
    /// A directory, where a file is needed.
    IsDirectory,
    /// A FIFO, socket or device, which is never opened.
    NotRegular,
    /// Larger than the bound that was asked for.
    TooLarge,
    /// The system does not let us.
    Permission,
    /// The root, the file or the file system is not to be written.
    ReadOnly,
    /// The file is not what it was when it was read.
    Stale,
    /// Somebody else holds it and does not let go.
    Busy,
    /// A change failed in the middle and could not be taken back; the next start settles it.
    Unsettled,
    /// Anything else that the system reports.
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

    /// The error for what is closed.
    pub(crate) fn closed(path: impl Into<PathBuf>) -> Self {
        FsError::new(FsErrorKind::Closed, path, "is closed to these tools")
    }

    /// The same error, found out by looking outside the workspace.
    pub(crate) fn found_outside(self) -> Self {
        FsError { outside: true, ..self }
    }

    /// The error for an errno, by what it means for a file.
    pub(crate) fn from_errno(path: impl Into<PathBuf>, cannot: &str, errno: Errno) -> Self {
        let kind = match errno {
            Errno::NOENT | Errno::NOTDIR => FsErrorKind::NotFound,
            Errno::ACCESS | Errno::PERM => FsErrorKind::Permission,
            Errno::ROFS => FsErrorKind::ReadOnly,
            // Every open refuses links: one that turned up after resolving is a swap.
            Errno::LOOP | Errno::XDEV => FsErrorKind::Stale,
            _ => FsErrorKind::Io,
        };
        FsError::new(kind, path, format!("{cannot}: {}", errno::describe(errno)))
    }

    /// The error for one of the standard library, about a file of our own.
    pub(crate) fn from_io(path: impl Into<PathBuf>, cannot: &str, error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => FsError::from_errno(path, cannot, Errno::from_raw_os_error(number)),
            None => FsError::new(FsErrorKind::Io, path, format!("{cannot}: {error}")),
        }
    }

    /// The same error, after which not everything is as it was.
    pub(crate) fn unsettled(self) -> Self {
        FsError { kind: FsErrorKind::Unsettled, ..self }
    }

    /// What went wrong, to branch on.
    pub fn kind(&self) -> FsErrorKind {
        self.kind
    }

    /// Whether it tells something about what lies outside the workspace.
    pub fn tells_of_outside(&self) -> bool {
        self.outside
    }

    /// The path, as far as it was understood.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What went wrong, in words that go on where the path ends: `is a directory`. For what is no path
    /// ([`FsErrorKind::Invalid`]) a sentence of its own.
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
