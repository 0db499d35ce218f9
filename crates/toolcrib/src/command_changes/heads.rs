//! The state of repositories before a command. Undo restores files: it moves no head, changes no stash, and neither
//! removes nor restores a `.git`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{TreeReader, Workspace};
use toolcrib_text::visible_name;

use crate::sandbox::git_directory::{self, COMMON};
use crate::sandbox::git_refs::{self, Head};

/// As many repositories are followed.
const MAX_HEADS: usize = 8;

/// Names in a git directory that move its head when they change.
const MOVE_HEAD: [&str; 4] = ["HEAD", "logs", "packed-refs", "refs"];

/// The name of the git directory of a work tree.
const USUAL_NAME: &str = ".git";

/// The file of the newest stash entry, in a git directory.
const STASH: &str = "refs/stash";

/// What is in a git directory while a command of git is not done, and the command that ends it.
const UNDER_WAY: [(&str, &str); 5] = [
    ("rebase-merge", "git rebase --abort"),
    ("rebase-apply", "git rebase --abort"),
    ("BISECT_LOG", "git bisect reset"),
    ("CHERRY_PICK_HEAD", "git cherry-pick --abort"),
    ("REVERT_HEAD", "git revert --abort"),
];

/// The heads and stashes of the repositories that a command changes, and whether they exist.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By the real path of the git directory.
    before: BTreeMap<PathBuf, Option<Head>>,
    /// By the real path of each `.git`: whether it existed.
    existed: BTreeMap<PathBuf, bool>,
    /// By the real path of the git directory: the newest stash entry.
    stashes: BTreeMap<PathBuf, Option<Vec<u8>>>,
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
        if let Some(repository) = relative.ancestors().find(|path| path.ends_with(USUAL_NAME)) {
            let existed = self.existed.entry(tree.path().join(repository));
            existed.or_insert_with(|| tree.may_have(repository));
        }
        let mut directory = PathBuf::new();
        for name in relative.iter() {
            let real = tree.path().join(&directory);
            if is_part(&directory) && relative == directory.join(STASH) {
                let stash = self.stashes.entry(real.clone());
                stash.or_insert_with(|| git_directory::read(&tree, &relative));
            }
            if is_part(&directory)
                && MOVE_HEAD.iter().any(|moves| name == *moves)
                && !self.before.contains_key(&real)
            {
                self.before.insert(real, head(&tree, &directory));
            }
            directory.push(name);
        }
    }

    /// What to say of the repositories that have changed since this was asked last, in a way that Undo does not revert.
    pub(super) fn take_moved(&mut self, workspace: &Workspace) -> Vec<String> {
        let mut moved = Vec::new();
        for (directory, before) in &mut self.before {
            let place = workspace.tree_of(directory);
            let after = place.as_ref().and_then(|(tree, relative)| head(tree, relative));
            if let (Some(before), Some(after), Some((tree, relative))) = (&before, &after, &place) {
                moved.extend(sentence(before, after, under_way(tree, relative)));
            }
            *before = after;
        }
        for (repository, existed) in &mut self.existed {
            let place = workspace.tree_of(repository);
            let exists = place.is_some_and(|(tree, relative)| tree.may_have(&relative));
            let shown = visible_name(repository.as_os_str().as_encoded_bytes());
            match (*existed, exists) {
                (false, true) => {
                    moved.push(format!("{shown} was made, and an undo does not remove it"));
                }
                (true, false) => {
                    moved.push(format!("{shown} was removed, and an undo does not bring it back"));
                }
                _ => {}
            }
            *existed = exists;
        }
        for (directory, before) in &mut self.stashes {
            let place = workspace.tree_of(&directory.join(STASH));
            let after = place.and_then(|(tree, relative)| git_directory::read(&tree, &relative));
            if *before != after {
                let sentence = "the stash has changed, and an undo does not change it back: see `git stash list`";
                moved.push(sentence.to_owned());
            }
            *before = after;
        }
        moved
    }
}

/// The command that ends the operation of git that is under way.
fn under_way(tree: &TreeReader, directory: &Path) -> Option<&'static str> {
    let found = UNDER_WAY.iter().find(|(name, _)| tree.may_have(&directory.join(name)));
    found.map(|(_, command)| *command)
}

fn head(tree: &TreeReader, directory: &Path) -> Option<Head> {
    if !git_directory::is_complete(tree, directory, None) {
        return None;
    }
    let common = git_directory::read(tree, &directory.join(COMMON));
    let common = common
        .and_then(|text| String::from_utf8(text).ok())
        .and_then(|common| git_directory::beneath_root(tree, directory, Path::new(common.trim())));
    git_refs::head(tree, directory, common.as_deref().unwrap_or(directory))
}

fn sentence(before: &Head, after: &Head, under_way: Option<&str>) -> Option<String> {
    let (old, new) = (before.commit?, after.commit?);
    if before == after {
        return None;
    }
    let shown = |head: &Head| head.branch.clone().unwrap_or_else(|| "detached".to_owned());
    let back = match (under_way, &before.branch, before.branch == after.branch) {
        (Some(command), ..) => command.to_owned(),
        (None, Some(_), true) => format!("git reset {}", old.short()),
        (None, Some(branch), false) => format!("git checkout {branch}"),
        (None, None, _) => format!("git checkout {}", old.short()),
    };
    Some(format!(
        "HEAD moved from {} ({}) to {} ({}), and an undo does not move it: `{back}` does",
        old.short(),
        shown(before),
        new.short(),
        shown(after)
    ))
}
