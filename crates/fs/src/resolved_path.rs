//! A path after resolving: a root, and real names beneath it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::FsError;
use crate::file::FileKind;
use crate::open_beneath::permissions;
use crate::root::{Root, RootKind, join};

/// Where a path really leads: real names beneath a root, no link among them, proven by walking there.
/// What happens at the place afterwards follows no link, so it happens there or nowhere.
#[derive(Debug, Clone)]
pub struct ResolvedPath {
    pub(crate) root: Arc<Root>,
    pub(crate) relative: PathBuf,
    pub(crate) kind: Option<FileKind>,
    pub(crate) mode: Option<u32>,
    /// The links that were followed, each with its root and the names that came after it.
    pub(crate) links: Vec<(Arc<Root>, PathBuf)>,
}

impl ResolvedPath {
    /// The absolute path, for people and for policies.
    pub fn path(&self) -> PathBuf {
        join(self.root.path(), &self.relative)
    }

    /// The absolute path under which the journal knows it. It differs from [`Place::path`] in the temporary
    /// directory of a session, which other sessions have another one of.
    pub fn location(&self) -> PathBuf {
        join(self.root.location(), &self.relative)
    }

    /// Whether it lies outside the workspace and the session's own directories.
    pub fn is_outside(&self) -> bool {
        self.root.kind() == RootKind::System
    }

    /// The same place, in a root that may be written though it be that of the system.
    pub fn for_writing(self) -> Result<ResolvedPath, FsError> {
        Ok(ResolvedPath { root: Arc::new(self.root.for_writing()?), ..self })
    }

    /// The directory that it is in; the root itself is in none that may be seen.
    pub fn parent(&self) -> Option<ResolvedPath> {
        let (parent, _) = self.split()?;
        let opened = self.root.open_beneath(parent, OFlags::PATH, "cannot be looked at").ok();
        let stat = opened.and_then(|opened| rustix::fs::fstat(&opened).ok());
        Some(ResolvedPath {
            root: self.root.clone(),
            relative: parent.to_owned(),
            kind: stat.as_ref().map(FileKind::of),
            mode: stat.as_ref().map(|stat| permissions(stat).as_raw_mode()),
            links: Vec::new(),
        })
    }

    /// The root it is in.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The path from its root; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// What was there when the path was resolved; nothing, if it can only be created.
    pub fn kind(&self) -> Option<FileKind> {
        self.kind
    }

    /// The mode bits of what was there when the path was resolved.
    pub fn mode(&self) -> Option<u32> {
        self.mode
    }

    /// Whether a symbolic link was followed on the way.
    pub fn through_link(&self) -> bool {
        !self.links.is_empty()
    }

    /// The paths from their roots that lead here: through each link, and the real one. A rule about names
    /// holds for all of them.
    pub fn names_on_the_way(&self) -> impl Iterator<Item = &Path> {
        let links = self.links.iter().map(|(_, path)| path.as_path());
        links.chain([self.relative.as_path()])
    }

    /// The same as absolute paths.
    pub fn paths_on_the_way(&self) -> impl Iterator<Item = PathBuf> {
        let links = self.links.iter().map(|(root, path)| join(root.path(), path));
        links.chain([self.path()])
    }

    /// Whether this is `other`, or beneath it.
    pub fn is_within(&self, other: &ResolvedPath) -> bool {
        self.path().starts_with(other.path())
    }

    /// The directory it is in, and its name there; the root itself has neither.
    pub(crate) fn split(&self) -> Option<(&Path, &OsStr)> {
        Some((self.relative.parent()?, self.relative.file_name()?))
    }
}
