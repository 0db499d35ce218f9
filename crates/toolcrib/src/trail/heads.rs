//! Where the heads of work trees were before a command: Undo restores files, and never moves a head.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Tree, Workspace};

use crate::sandbox::git_directory::{self, COMMON};
use crate::sandbox::git_refs::{self, Head};

/// As many repositories are followed.
const MAX_HEADS: usize = 8;

/// Names in a git directory that move its head when they change.
const MOVE_HEAD: [&str; 4] = ["HEAD", "logs", "packed-refs", "refs"];

/// The name of the git directory of a work tree.
const USUAL_NAME: &str = ".git";

/// The heads of the repositories that a command changes.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By the real path of the git directory.
    before: BTreeMap<PathBuf, Option<Head>>,
}

impl Heads {
    /// A command is about to change something in a workspace.
    pub(super) fn touched(&mut self, workspace: &Workspace, path: &Path) {
        // Nearly all paths are no part of a repository.
        let is_part = |path: &Path| path.iter().any(|name| name == USUAL_NAME);
        if self.before.len() >= MAX_HEADS || !is_part(path) {
            return;
        }
        let Some((tree, relative)) = workspace.tree_of(path) else { return };
        let mut directory = PathBuf::new();
        for name in relative.iter() {
            let real = tree.path().join(&directory);
            if is_part(&directory)
                && MOVE_HEAD.iter().any(|moves| name == *moves)
                && !self.before.contains_key(&real)
            {
                self.before.insert(real, head(&tree, &directory));
            }
            directory.push(name);
        }
    }

    /// What to say of the heads that have moved since this was asked last.
    pub(super) fn take_moved(&mut self, workspace: &Workspace) -> Vec<String> {
        let mut moved = Vec::new();
        for (directory, before) in &mut self.before {
            let place = workspace.tree_of(directory);
            let after = place.and_then(|(tree, relative)| head(&tree, &relative));
            if let (Some(before), Some(after)) = (&before, &after) {
                moved.extend(sentence(before, after));
            }
            *before = after;
        }
        moved
    }
}

fn head(tree: &Tree, directory: &Path) -> Option<Head> {
    if !git_directory::is_complete(tree, directory, None) {
        return None;
    }
    let common = git_directory::read(tree, &directory.join(COMMON));
    let common = common
        .and_then(|text| String::from_utf8(text).ok())
        .and_then(|common| git_directory::beneath_root(tree, directory, Path::new(common.trim())));
    git_refs::head(tree, directory, common.as_deref().unwrap_or(directory))
}

fn sentence(before: &Head, after: &Head) -> Option<String> {
    let (old, new) = (before.commit?, after.commit?);
    if before == after {
        return None;
    }
    let shown = |head: &Head| head.branch.clone().unwrap_or_else(|| "detached".to_owned());
    let back = match (&before.branch, before.branch == after.branch) {
        (Some(_), true) => format!("git reset {}", old.short()),
        (Some(branch), false) => format!("git checkout {branch}"),
        (None, _) => format!("git checkout {}", old.short()),
    };
    Some(format!(
        "HEAD moved from {} ({}) to {} ({}), and Undo does not move it: `{back}` does",
        old.short(),
        shown(before),
        new.short(),
        shown(after)
    ))
}
