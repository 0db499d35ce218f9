//! State of the repositories before a command. Undo restores files only: it does not move a head, change a
//! stash, or remove or restore a `.git`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{TreeReader, Workspace};
use toolcrib_text::visible_name;

use crate::sandbox::git_directory::{self, COMMON};
use crate::sandbox::git_refs::{self, Head};

/// Limit of observed repositories.
const MAX_HEADS: usize = 8;

/// Names in a git directory that move its head when they change.
const HEAD_ENTRIES: [&str; 4] = ["HEAD", "logs", "packed-refs", "refs"];

/// The name of the git directory of a work tree.
const DOT_GIT: &str = ".git";

/// The file of the newest stash entry, in a git directory.
const STASH: &str = "refs/stash";

/// Entries of a git directory during an unfinished git operation, with the command that aborts it.
const UNFINISHED_OPERATIONS: [(&str, &str); 5] = [
    ("rebase-merge", "git rebase --abort"),
    ("rebase-apply", "git rebase --abort"),
    ("BISECT_LOG", "git bisect reset"),
    ("CHERRY_PICK_HEAD", "git cherry-pick --abort"),
    ("REVERT_HEAD", "git revert --abort"),
];

/// Heads and stashes of the repositories that a command changes, and whether each repository existed.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By resolved path of the git directory.
    before: BTreeMap<PathBuf, Option<Head>>,
    /// By resolved path of each `.git`.
    existed: BTreeMap<PathBuf, bool>,
    /// Newest stash entry, by resolved path of the git directory.
    stashes: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Heads {
    /// Called before a command changes a path.
    pub(super) fn before_change(&mut self, workspace: &Workspace, path: &Path) {
        // Most paths are not part of a repository.
        let is_part = |path: &Path| path.iter().any(|name| name == DOT_GIT);
        if self.before.len() >= MAX_HEADS || !is_part(path) {
            return;
        }
        let Some((tree, relative)) = workspace.tree_of(path) else { return };
        if let Some(repository) = relative.ancestors().find(|path| path.ends_with(DOT_GIT)) {
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
                && HEAD_ENTRIES.iter().any(|moves| name == *moves)
                && !self.before.contains_key(&real)
            {
                self.before.insert(real, head(&tree, &directory));
            }
            directory.push(name);
        }
    }

    /// Describes the changes to repositories since the last call of this method that Undo does not revert.
    pub(super) fn take_notes(&mut self, workspace: &Workspace) -> Vec<String> {
        let mut notes = Vec::new();
        for (directory, before) in &mut self.before {
            let place = workspace.tree_of(directory);
            let after = place.as_ref().and_then(|(tree, relative)| head(tree, relative));
            if let (Some(before), Some(after), Some((tree, relative))) = (&before, &after, &place) {
                notes.extend(moved_head_note(before, after, abort_command(tree, relative)));
            }
            *before = after;
        }
        for (repository, existed) in &mut self.existed {
            let place = workspace.tree_of(repository);
            let exists = place.is_some_and(|(tree, relative)| tree.may_have(&relative));
            let shown = visible_name(repository.as_os_str().as_encoded_bytes());
            match (*existed, exists) {
                (false, true) => {
                    notes.push(format!("{shown} was created; an undo does not remove it"));
                }
                (true, false) => {
                    notes.push(format!("{shown} was removed; an undo does not restore it"));
                }
                _ => {}
            }
            *existed = exists;
        }
        for (directory, before) in &mut self.stashes {
            let place = workspace.tree_of(&directory.join(STASH));
            let after = place.and_then(|(tree, relative)| git_directory::read(&tree, &relative));
            if *before != after {
                let sentence =
                    "the stash was changed; an undo does not restore it: see `git stash list`";
                notes.push(sentence.to_owned());
            }
            *before = after;
        }
        notes
    }
}

/// The command that aborts the unfinished git operation.
fn abort_command(tree: &TreeReader, directory: &Path) -> Option<&'static str> {
    let found = UNFINISHED_OPERATIONS.iter().find(|(name, _)| tree.may_have(&directory.join(name)));
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

fn moved_head_note(before: &Head, after: &Head, abort: Option<&str>) -> Option<String> {
    let (old, new) = (before.commit?, after.commit?);
    if before == after {
        return None;
    }
    let shown = |head: &Head| head.branch.clone().unwrap_or_else(|| "detached".to_owned());
    let back = match (abort, &before.branch, before.branch == after.branch) {
        (Some(command), ..) => command.to_owned(),
        (None, Some(_), true) => format!("git reset {}", old.short()),
        (None, Some(branch), false) => format!("git checkout {branch}"),
        (None, None, _) => format!("git checkout {}", old.short()),
    };
    Some(format!(
        "HEAD moved from {} ({}) to {} ({}); an undo does not move it back, `{back}` does",
        old.short(),
        shown(before),
        new.short(),
        shown(after)
    ))
}
