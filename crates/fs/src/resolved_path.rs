//! A resolved path: a root, and real names beneath it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{OFlags, Stat};

use crate::error::FsError;
use crate::file_kind::FileKind;
use crate::open_beneath::{permissions, stat_beneath};
use crate::root::{Root, RootKind, join};

/// A resolved path: real names beneath a root, without symlinks, found by walking there. Later operations
/// follow no symlink, so they act on this path or fail.
#[derive(Debug, Clone)]
pub struct ResolvedPath {
    pub(crate) root: Arc<Root>,
    pub(crate) relative: PathBuf,
    pub(crate) kind: Option<FileKind>,
    pub(crate) mode: Option<u32>,
    /// The symlinks that were followed, each as its root and its path with the remaining components.
    pub(crate) links: Vec<(Arc<Root>, PathBuf)>,
}

/// The properties of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMetadata {
    /// Its kind.
    pub kind: FileKind,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Its modification time, in nanoseconds since 1970.
    pub modified_ns: i64,
}

impl FileMetadata {
    pub(crate) fn of(stat: &Stat) -> FileMetadata {
        let nanoseconds =
            i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
        FileMetadata {
            kind: FileKind::of(stat),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: permissions(stat).as_raw_mode(),
            modified_ns: i64::try_from(nanoseconds).unwrap_or(i64::MAX),
        }
    }
}

impl ResolvedPath {
    /// The absolute path, for people and for policies.
    pub fn path(&self) -> PathBuf {
        join(self.root.path(), &self.relative)
    }

    /// The absolute path in the journal. It differs from [`ResolvedPath::path`] in the temporary directory of
    /// a session, since each session has its own.
    pub fn location(&self) -> PathBuf {
        join(self.root.location(), &self.relative)
    }

    /// The size, mode and modification time of the file now. A symlink at the path is not followed.
    pub fn metadata(&self) -> Result<FileMetadata, FsError> {
        let stat = if self.relative.as_os_str().is_empty() {
            rustix::fs::fstat(self.root.handle())
        } else {
            stat_beneath(self.root.handle(), &self.relative)
        };
        let stat =
            stat.map_err(|errno| FsError::from_errno(self.path(), "cannot be inspected", errno))?;
        Ok(FileMetadata::of(&stat))
    }

    /// The path of its root, if that directory no longer exists.
    pub fn removed_root(&self) -> Option<&Path> {
        self.root.is_removed().then(|| self.root.path())
    }

    /// Whether it is outside the workspace and the session's own directories.
    pub fn is_outside(&self) -> bool {
        self.root.kind() == RootKind::System
    }

    /// The same path in a writable root, even if that is the root of the system.
    pub fn for_writing(self) -> Result<ResolvedPath, FsError> {
        Ok(ResolvedPath { root: Arc::new(self.root.for_writing()?), ..self })
    }

    /// The parent directory. `None` for a root.
    pub fn parent(&self) -> Option<ResolvedPath> {
        let (parent, _) = self.split()?;
        let opened = self.root.open_beneath(parent, OFlags::PATH, "cannot be inspected").ok();
        let stat = opened.and_then(|opened| rustix::fs::fstat(&opened).ok());
        Some(ResolvedPath {
            root: self.root.clone(),
            relative: parent.to_owned(),
            kind: stat.as_ref().map(FileKind::of),
            mode: stat.as_ref().map(|stat| permissions(stat).as_raw_mode()),
            links: Vec::new(),
        })
    }

    /// The root that it is in.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The path from its root. Empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// The kind of the file when the path was resolved. `None` if it did not exist.
    pub fn kind(&self) -> Option<FileKind> {
        self.kind
    }

    /// The mode bits of the file when the path was resolved.
    pub fn mode(&self) -> Option<u32> {
        self.mode
    }

    /// Whether a symlink was followed.
    pub fn through_link(&self) -> bool {
        !self.links.is_empty()
    }

    /// All paths that lead here, relative to their roots: through each symlink, and the real one. A rule
    /// about paths applies to all of them.
    pub fn relative_aliases(&self) -> impl Iterator<Item = &Path> {
        let links = self.links.iter().map(|(_, path)| path.as_path());
        links.chain([self.relative.as_path()])
    }

    /// All paths that lead here, as absolute paths.
    pub fn path_aliases(&self) -> impl Iterator<Item = PathBuf> {
        let links = self.links.iter().map(|(root, path)| join(root.path(), path));
        links.chain([self.path()])
    }

    /// Whether this is `other`, or beneath it.
    pub fn is_within(&self, other: &ResolvedPath) -> bool {
        self.path().starts_with(other.path())
    }

    /// The parent directory and the name in it. `None` for a root.
    pub(crate) fn split(&self) -> Option<(&Path, &OsStr)> {
        Some((self.relative.parent()?, self.relative.file_name()?))
    }
}
