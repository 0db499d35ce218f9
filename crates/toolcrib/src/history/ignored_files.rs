//! Files in ignored directories, which diffs for readers only count: a test cache has hundreds of lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::Workspace;

use crate::ignored_directories::IgnoredDirectories;
use crate::phrases::{counted, first_of};

/// Directories that are named.
const NAMED: usize = 5;

/// Counts the files of ignored directories.
pub(crate) struct IgnoredFiles<'a> {
    directories: IgnoredDirectories<'a>,
    files: BTreeMap<PathBuf, u64>,
}

impl<'a> IgnoredFiles<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> IgnoredFiles<'a> {
        IgnoredFiles { directories: IgnoredDirectories::new(workspace), files: BTreeMap::new() }
    }

    /// Whether a file is in an ignored directory.
    pub(crate) fn contains(&mut self, path: &Path) -> bool {
        self.directories.containing(path).is_some()
    }

    /// Counts a file if it is in an ignored directory. Returns whether it is.
    pub(crate) fn count(&mut self, path: &Path) -> bool {
        let Some(directory) = self.directories.containing(path) else { return false };
        *self.files.entry(directory).or_default() += 1;
        true
    }

    /// A line about the counted files. Empty if there are none.
    pub(crate) fn line(&self, show: impl Fn(&Path) -> String) -> String {
        let directories: Vec<(&PathBuf, &u64)> = self.files.iter().collect();
        if directories.is_empty() {
            return String::new();
        }
        let names = first_of(&directories, NAMED, |(directory, files)| {
            format!("{} in {}", counted(**files, "file"), show(directory))
        });
        format!("[ignored or generated: {names}]\n")
    }
}
