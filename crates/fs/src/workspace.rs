//! The roots together: where every path starts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags};

use crate::beneath;
use crate::error::{FsError, FsErrorKind};
use crate::place::Place;
use crate::resolve;
use crate::root::Root;

/// All that the tools may see of the file system.
#[derive(Debug, Clone)]
pub struct Workspace {
    roots: Vec<Arc<Root>>,
}

impl Workspace {
    /// A workspace of these roots, at least one. The first is where relative paths begin.
    pub fn new(roots: Vec<Root>) -> Result<Self, FsError> {
        if roots.is_empty() {
            return Err(FsError::new(
                FsErrorKind::Invalid,
                "",
                "a workspace needs at least one root",
            ));
        }
        Ok(Workspace { roots: roots.into_iter().map(Arc::new).collect() })
    }

    /// The roots, in the order given.
    pub fn roots(&self) -> impl Iterator<Item = &Root> {
        self.roots.iter().map(Arc::as_ref)
    }

    /// The first root as a place.
    pub fn top(&self) -> Place {
        Place {
            root: self.roots[0].clone(),
            relative: "".into(),
            kind: Some(crate::FileKind::Directory),
            through_link: false,
        }
    }

    /// Finds where a path leads. A relative one begins at `directory`.
    pub fn resolve(&self, directory: &Place, path: &Path) -> Result<Place, FsError> {
        resolve::resolve(&self.roots, directory, path)
    }

    /// The names in the directory that a place is in, at most `max`: to find those that are near one
    /// that is missing.
    pub fn names_beside(&self, place: &Place, max: usize) -> Result<Vec<OsString>, FsError> {
        let Some((parent, _)) = place.split() else {
            return Ok(Vec::new());
        };
        self.names_at(place, parent, max)
    }

    /// The names in a directory, at most `max`, in no order.
    pub fn names_in(&self, directory: &Place, max: usize) -> Result<Vec<OsString>, FsError> {
        self.names_at(directory, &directory.relative, max)
    }

    fn names_at(
        &self,
        place: &Place,
        relative: &Path,
        max: usize,
    ) -> Result<Vec<OsString>, FsError> {
        let error = |errno| FsError::from_errno(place.path(), "cannot be listed", errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let handle = beneath::open(place.root.handle(), relative, flags, Mode::empty());
        let entries = Dir::new(handle.map_err(error)?).map_err(error)?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(error)?.file_name().to_bytes().to_owned();
            if name != b"." && name != b".." {
                names.push(std::ffi::OsStr::from_bytes(&name).to_owned());
            }
            if names.len() >= max {
                break;
            }
        }
        Ok(names)
    }
}
