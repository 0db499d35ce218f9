//! Paths that the configurations of repositories make git run or read.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_fs::{BulkReader, Workspace};

use crate::git::directory;
use crate::git::paths_in_config::git_config_paths;

/// The paths in the configurations of repositories, read on demand.
#[derive(Debug)]
pub(super) struct ConfiguredPaths {
    /// By work tree. Empty for a directory that is not a work tree.
    by_work_tree: Mutex<HashMap<PathBuf, Arc<Vec<PathBuf>>>>,
    /// The roots and their parent directories, which may be work trees.
    around_roots: BTreeSet<PathBuf>,
    home: Option<PathBuf>,
}

impl ConfiguredPaths {
    pub(super) fn new(workspace: &Workspace, home: Option<&Path>) -> ConfiguredPaths {
        let mut around_roots = BTreeSet::new();
        for root in workspace.roots() {
            around_roots.extend(root.path().ancestors().map(Path::to_owned));
        }
        let home = home.map(Path::to_owned);
        ConfiguredPaths { by_work_tree: Mutex::default(), around_roots, home }
    }

    /// Whether a configuration names the path or a directory above it. If the access `replaces` the path, paths
    /// below it count, too. An unreadable configuration counts as a match.
    pub(super) fn contains(&self, tree: &BulkReader, relative: &Path, replaces: bool) -> bool {
        let path = tree.path().join(relative);
        let is_one =
            |named: &PathBuf| path.starts_with(named) || (replaces && named.starts_with(&path));
        let mut in_tree = relative.ancestors().skip(1).map(|work_tree| {
            let is_work_tree = || directory::may_be_work_tree(tree, work_tree);
            self.of_work_tree(&tree.path().join(work_tree), is_work_tree)
        });
        // No command can make these unreadable.
        let mut around =
            self.around_roots.iter().filter_map(|path| self.of_work_tree(path, || true));
        in_tree.any(|named| named.is_none_or(|named| named.iter().any(is_one)))
            || around.any(|named| named.iter().any(is_one))
    }

    /// Makes the configurations be read again: a command has started, or a configuration has changed.
    pub(super) fn forget(&self) {
        self.by_work_tree.lock().clear();
    }

    /// `None` if the configuration cannot be read.
    fn of_work_tree(
        &self,
        work_tree: &Path,
        is_work_tree: impl FnOnce() -> bool,
    ) -> Option<Arc<Vec<PathBuf>>> {
        if let Some(known) = self.by_work_tree.lock().get(work_tree) {
            return Some(known.clone());
        }
        let named = if is_work_tree() {
            git_config_paths(work_tree, self.home.as_deref())?
        } else {
            Vec::new()
        };
        let named = Arc::new(named);
        self.by_work_tree.lock().insert(work_tree.to_owned(), named.clone());
        Some(named)
    }
}
