//! Finds the ignored directory that contains a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::Workspace;
use toolcrib_search::IgnoreLookup;

/// The ignored directories of a workspace. The ignore files of a root are read when its first file is looked up.
pub(crate) struct IgnoredDirectories<'a> {
    workspace: &'a Workspace,
    /// By root.
    lookups: HashMap<PathBuf, IgnoreLookup>,
}

impl<'a> IgnoredDirectories<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> IgnoredDirectories<'a> {
        IgnoredDirectories { workspace, lookups: HashMap::new() }
    }

    /// The ignored directory that contains a file. `None` if there is none.
    pub(crate) fn containing(&mut self, path: &Path) -> Option<PathBuf> {
        let (tree, relative) = self.workspace.tree_of(path)?;
        let root = tree.path().to_owned();
        let lookup = self.lookups.entry(root.clone()).or_insert_with(|| IgnoreLookup::new(tree));
        lookup.ignored_directory_of(&relative).map(|directory| root.join(directory))
    }
}
