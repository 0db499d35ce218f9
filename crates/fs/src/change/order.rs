//! Decides which steps of a change must wait for others: a file whose path is still a directory, and files in
//! a directory whose path is still a file or a symlink.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::step::Step;
use crate::resolved_path::ResolvedPath;

/// The paths that are occupied until the first steps are done.
pub(super) struct Order {
    /// Existing files and symlinks. Nothing can be beneath them before they are removed.
    files: HashSet<PathBuf>,
    /// Directories that will be removed.
    directories: HashSet<PathBuf>,
}

impl Order {
    pub(super) fn new(steps: &[Step], unneeded: &[ResolvedPath]) -> Order {
        let existing = steps.iter().filter(|step| step.was.is_some());
        Order {
            files: existing.map(|step| step.place.path()).collect(),
            directories: unneeded.iter().map(ResolvedPath::path).collect(),
        }
    }

    /// Whether a step must wait for the first steps.
    pub(super) fn must_wait(&self, step: &Step) -> bool {
        let path = step.place.path();
        self.is_beneath_file(&path) || (step.was.is_none() && self.directories.contains(&path))
    }

    /// Whether a directory can only be created after the first steps.
    pub(super) fn directory_must_wait(&self, place: &ResolvedPath) -> bool {
        let path = place.path();
        self.files.contains(&path) || self.is_beneath_file(&path)
    }

    fn is_beneath_file(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.files.contains(above))
    }
}
