//! Work trees that a command adds with `git worktree add`. Undo removes their files, but not the work trees.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{BulkReader, Workspace};
use toolcrib_text::visible_name;

use super::git_directory::{GitPlace, quoted};
use crate::git::directory::{self, DOT_GIT};

/// The directory of a git directory that has those of linked work trees.
const WORK_TREES: &str = "worktrees";

/// Limit of observed work trees.
const MAX_WORK_TREES: usize = 50;

/// Git directories of linked work trees that a command touched.
#[derive(Debug, Default)]
pub(super) struct WorkTrees {
    /// By resolved path.
    touched: BTreeMap<PathBuf, Touched>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Existed,
    New,
    /// New, and a note has named it.
    Named,
}

/// An added work tree.
#[derive(Debug)]
pub(super) struct AddedWorkTree {
    /// The git directory to which it belongs.
    pub(super) place: GitPlace,
    /// Its `.git` file, as git records it.
    pub(super) dot_git: PathBuf,
}

impl WorkTrees {
    /// Called before a command changes a path.
    pub(super) fn before_change(&mut self, tree: &BulkReader, relative: &Path) {
        let names: Vec<&OsStr> = relative.iter().collect();
        let at = names.windows(2).position(|pair| pair[0] == DOT_GIT && pair[1] == WORK_TREES);
        let Some(directory) = at.and_then(|at| names.get(..at + 3)) else { return };
        let directory: PathBuf = directory.iter().collect();
        if self.touched.len() < MAX_WORK_TREES {
            let touched = self.touched.entry(tree.path().join(&directory));
            touched.or_insert_with(|| {
                if tree.may_have(&directory) { Touched::Existed } else { Touched::New }
            });
        }
    }

    /// Whether the command made the git directory of a work tree, and no note has named it yet.
    pub(super) fn is_new(&self, directory: &Path) -> bool {
        self.touched.get(directory) == Some(&Touched::New)
    }

    /// The work trees that the command has added so far.
    pub(super) fn added(&self, workspace: &Workspace) -> Vec<AddedWorkTree> {
        let added = self.touched.iter().filter(|(_, touched)| **touched != Touched::Existed);
        added.filter_map(|(directory, _)| AddedWorkTree::at(workspace, directory)).collect()
    }

    /// The work trees that were added since the last call of this method.
    pub(super) fn take_added(&mut self, workspace: &Workspace) -> Vec<AddedWorkTree> {
        let mut added = Vec::new();
        for (directory, touched) in &mut self.touched {
            if *touched == Touched::New
                && let Some(work_tree) = AddedWorkTree::at(workspace, directory)
            {
                added.push(work_tree);
                *touched = Touched::Named;
            }
        }
        added
    }
}

impl AddedWorkTree {
    /// `None` if there is no work tree.
    fn at(workspace: &Workspace, directory: &Path) -> Option<AddedWorkTree> {
        let (tree, relative) = workspace.tree_of(directory)?;
        let recorded = directory::read(&tree, &relative.join("gitdir"))?;
        let dot_git = PathBuf::from(String::from_utf8(recorded).ok()?.trim());
        // Git can record a path relative to its own file.
        let dot_git = match directory::beneath_root(&tree, &relative, &dot_git) {
            Some(inside) => tree.path().join(inside),
            None => dot_git,
        };
        dot_git.ends_with(DOT_GIT).then_some(())?;
        let main = directory::common(&tree, &relative);
        Some(AddedWorkTree { place: GitPlace { tree, directory: main }, dot_git })
    }

    /// The note about it, with a command for `next_directory`.
    pub(super) fn note(&self, next_directory: &Path) -> String {
        let path = self.path();
        let shown = path.strip_prefix(next_directory).unwrap_or(path);
        let shown = visible_name(shown.as_os_str().as_encoded_bytes());
        format!(
            "the work tree {shown} was added; an undo removes only its files: `{}` removes it",
            remove_command(&shown)
        )
    }

    /// The words for the list of changed parts.
    pub(super) fn part(&self) -> String {
        let shown = visible_name(self.path().as_os_str().as_encoded_bytes());
        format!("the work tree {shown} (`{}` removes it)", remove_command(&shown))
    }

    fn path(&self) -> &Path {
        self.dot_git.parent().unwrap_or(&self.dot_git)
    }
}

fn remove_command(shown: &str) -> String {
    format!("git worktree remove --force {}", quoted(shown))
}
