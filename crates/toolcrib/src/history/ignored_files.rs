//! Files in ignored directories, which diffs for readers only count: a test cache has hundreds of lines.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use toolcrib_fs::Workspace;
use toolcrib_search::IgnoreLookup;

use crate::phrases::{counted, first_of};

/// Directories that are named.
const NAMED: usize = 5;

/// Counts the files of ignored directories.
pub(super) struct IgnoredFiles<'a> {
    workspace: &'a Workspace,
    /// By root.
    lookups: HashMap<PathBuf, IgnoreLookup>,
    files: BTreeMap<PathBuf, u64>,
}

impl<'a> IgnoredFiles<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> IgnoredFiles<'a> {
        IgnoredFiles { workspace, lookups: HashMap::new(), files: BTreeMap::new() }
    }

    /// Counts a file if it is in an ignored directory. Returns whether it is.
    pub(super) fn count(&mut self, path: &Path) -> bool {
        let Some((tree, relative)) = self.workspace.tree_of(path) else { return false };
        let root = tree.path().to_owned();
        let lookup = self.lookups.entry(root.clone()).or_insert_with(|| IgnoreLookup::new(tree));
        let Some(directory) = lookup.ignored_directory_of(&relative) else { return false };
        *self.files.entry(root.join(directory)).or_default() += 1;
        true
    }

    /// A line about the counted files. Empty if there are none.
    pub(super) fn line(&self, show: impl Fn(&Path) -> String) -> String {
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
