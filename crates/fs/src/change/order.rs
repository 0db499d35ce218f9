//! Which steps of a change must wait for others: a file that is to be where a directory is, and files in a
//! directory whose name a file or a symlink still has.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::step::Step;
use crate::resolved_path::ResolvedPath;

/// The names that are taken until the first steps are made.
pub(super) struct Order {
    /// Files and symlinks that there are now. Nothing can be beneath them before they are gone.
    files: HashSet<PathBuf>,
    /// Directories that are to go.
    directories: HashSet<PathBuf>,
}

impl Order {
    pub(super) fn of(steps: &[Step], unneeded: &[ResolvedPath]) -> Order {
        let there = steps.iter().filter(|step| step.was.is_some());
        Order {
            files: there.map(|step| step.place.path()).collect(),
            directories: unneeded.iter().map(ResolvedPath::path).collect(),
        }
    }

    /// Whether a step can be made only after the others.
    pub(super) fn comes_later(&self, step: &Step) -> bool {
        let path = step.place.path();
        self.is_beneath_file(&path) || (step.was.is_none() && self.directories.contains(&path))
    }

    /// Whether a directory can be made only after the first steps.
    pub(super) fn directory_comes_later(&self, place: &ResolvedPath) -> bool {
        let path = place.path();
        self.files.contains(&path) || self.is_beneath_file(&path)
    }

    fn is_beneath_file(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.files.contains(above))
    }
}
