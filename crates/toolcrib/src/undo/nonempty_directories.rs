//! Directories that an undo does not remove, because they have entries that it does not remove.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::cx::{Cx, FileEdit};

/// Which of the directories `unneeded`, parents first, have other entries than files that `edits` remove.
pub(super) fn nonempty_directories(
    cx: &Cx<'_>,
    unneeded: &[PathBuf],
    edits: &[FileEdit],
) -> HashSet<PathBuf> {
    let workspace = cx.paths().workspace.with(cx.session().opened_roots().iter().cloned());
    let removed = edits.iter().filter(|edit| edit.now.is_none()).map(|edit| edit.path.as_path());
    let mut removed: HashSet<&Path> = removed.collect();
    let mut nonempty = HashSet::new();
    for directory in unneeded.iter().rev() {
        let Some((tree, relative)) = workspace.tree_of(directory) else { continue };
        let Ok(listed) = tree.directory(&relative) else { continue };
        let mut is_empty = true;
        // Entries that cannot be listed cannot be removed either.
        let complete = listed.each(|name, _| {
            is_empty = removed.contains(directory.join(name).as_path());
            is_empty
        });
        if is_empty && complete.is_ok() {
            removed.insert(directory);
        } else {
            nonempty.insert(directory.clone());
        }
    }
    nonempty
}
