//! A path after resolving: a root, and real names beneath it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file::FileKind;
use crate::root::Root;

/// Where a path really leads: real names beneath a root, no link among them, proven by walking there.
/// What happens at the place afterwards follows no link, so it happens there or nowhere.
#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) root: Arc<Root>,
    pub(crate) relative: PathBuf,
    pub(crate) kind: Option<FileKind>,
    pub(crate) mode: Option<u32>,
    /// The links that were followed, from their root, each with the names that came after it.
    pub(crate) links: Vec<PathBuf>,
}

impl Place {
    /// The absolute path, for people and for policies.
    pub fn path(&self) -> PathBuf {
        self.root.path().join(&self.relative)
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
        self.links.iter().map(PathBuf::as_path).chain([self.relative.as_path()])
    }

    /// Whether this is `other`, or beneath it.
    pub fn is_within(&self, other: &Place) -> bool {
        self.path().starts_with(other.path())
    }

    /// The directory it is in, and its name there; the root itself has neither.
    pub(crate) fn split(&self) -> Option<(&Path, &OsStr)> {
        Some((self.relative.parent()?, self.relative.file_name()?))
    }
}
