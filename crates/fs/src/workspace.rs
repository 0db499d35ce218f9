//! The set of all roots, which resolves paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bulk_reader::BulkReader;
use crate::error::{FsError, FsErrorKind};
use crate::file_kind::FileKind;
use crate::open_beneath;
use crate::resolve;
use crate::resolved_path::ResolvedPath;
use crate::root::{Root, join};

/// All directories that the tools may access.
#[derive(Debug, Clone)]
pub struct Workspace {
    roots: Vec<Arc<Root>>,
}

impl Workspace {
    /// Creates a workspace of at least one root. Relative paths start in the first. Fails if a root is given
    /// both as read-only and as writable.
    pub fn new(roots: Vec<Root>) -> Result<Self, FsError> {
        if roots.is_empty() {
            return Err(FsError::new(
                FsErrorKind::Invalid,
                "",
                "a workspace needs at least one root",
            ));
        }
        for (at, root) in roots.iter().enumerate() {
            let same = |other: &&Root| other.path() == root.path();
            if roots[..at].iter().find(same).is_some_and(|other| other.mode() != root.mode()) {
                let detail = format!("{} is given twice, once as read-only", root.path().display());
                return Err(FsError::new(FsErrorKind::Invalid, root.path(), detail));
            }
        }
        Ok(Workspace { roots: roots.into_iter().map(Arc::new).collect() })
    }

    /// Adds further roots. If two roots have the same path, the existing one takes precedence.
    #[must_use]
    pub fn with(&self, others: impl IntoIterator<Item = Arc<Root>>) -> Workspace {
        let others = others.into_iter();
        let others = others.filter(|other| self.roots().all(|root| root.path() != other.path()));
        Workspace { roots: self.roots.iter().cloned().chain(others).collect() }
    }

    /// The roots, in the given order.
    pub fn roots(&self) -> impl Iterator<Item = &Root> {
        self.roots.iter().map(Arc::as_ref)
    }

    /// A reader for each root.
    pub fn trees(&self) -> impl Iterator<Item = BulkReader> {
        self.roots.iter().map(|root| BulkReader::of(root.clone()))
    }

    /// The first root as a resolved path.
    pub fn top(&self) -> ResolvedPath {
        ResolvedPath {
            root: self.roots[0].clone(),
            relative: "".into(),
            kind: Some(FileKind::Directory),
            mode: None,
            links: Vec::new(),
        }
    }

    /// Resolves a path. A relative one starts at `directory`. Fails if it leads outside all roots.
    pub fn resolve(&self, directory: &ResolvedPath, path: &Path) -> Result<ResolvedPath, FsError> {
        resolve::resolve(&self.roots, directory, path)
    }

    /// The path at which tools see the `location` of the journal. `None` if that is in no root.
    pub fn seen_path(&self, location: &Path) -> Option<PathBuf> {
        let seen = |root: &Arc<Root>| {
            let beneath = location.strip_prefix(root.location()).ok()?;
            Some((root.location().as_os_str().len(), join(root.path(), beneath)))
        };
        // The first of the innermost: `max_by_key` would return the last.
        let innermost = self.roots.iter().rev().filter_map(seen).max_by_key(|(length, _)| *length);
        innermost.map(|(_, path)| path)
    }

    /// Where a file that tools see at a real path is on the disk. The private `/tmp` of a session is elsewhere.
    pub fn location(&self, path: &Path) -> PathBuf {
        match self.innermost(path) {
            Some((root, relative)) => join(root.location(), &relative),
            None => path.to_owned(),
        }
    }

    /// The innermost root of a real path, as a reader, and the path from there.
    pub fn tree_of(&self, path: &Path) -> Option<(BulkReader, PathBuf)> {
        self.innermost(path).map(|(root, relative)| (BulkReader::of(root), relative))
    }

    /// The innermost root of a real path, and the path from there.
    pub(crate) fn innermost(&self, path: &Path) -> Option<(Arc<Root>, PathBuf)> {
        let beneath = |root: &Arc<Root>| {
            Some((root.clone(), path.strip_prefix(root.path()).ok()?.to_owned()))
        };
        self.roots.iter().filter_map(beneath).max_by_key(|(root, _)| root.path().as_os_str().len())
    }

    /// Finds a real path again without following symlinks: if the last component is a symlink, the result is
    /// the symlink itself. If an earlier component is no longer a directory, the result does not exist.
    /// `None` if the path is in no root.
    pub fn entry(&self, path: &Path) -> Option<ResolvedPath> {
        let (root, relative) = self.innermost(path)?;
        let is_plain =
            |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
        if relative.as_os_str().is_empty() || !relative.components().all(is_plain) {
            return None;
        }
        let stat = open_beneath::stat_beneath(root.handle(), &relative).ok();
        let kind = stat.as_ref().map(FileKind::of);
        let mode = stat.as_ref().map(|stat| open_beneath::permissions(stat).as_raw_mode());
        Some(ResolvedPath { root, relative, kind, mode, links: Vec::new() })
    }
}
