//! State of the repositories before a command, for notes about changes that Undo does not revert: it restores
//! files only, and does not move a head, change a stash, restore a reference, end a merge, or remove or restore a
//! `.git`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{TreeReader, Workspace};
use toolcrib_text::visible_name;

use super::lost_refs::References;
use crate::sandbox::git_directory::{self, COMMON};
use crate::sandbox::git_refs::{self, Head, ObjectId};

/// The note about new stash entries.
const STASHED: &str = "the stash was changed; an undo does not restore it: see `git stash list`";

/// Limit of observed repositories.
const MAX_HEADS: usize = 8;

/// Names in a git directory that change with its head, its references or an unfinished operation.
const STATE_ENTRIES: [&str; 8] = [
    "BISECT_LOG",
    "CHERRY_PICK_HEAD",
    "HEAD",
    "MERGE_HEAD",
    "REVERT_HEAD",
    "logs",
    "packed-refs",
    "refs",
];

/// The name of the git directory of a work tree.
const DOT_GIT: &str = ".git";

/// Entries of a git directory during an unfinished git operation, with the command that aborts it.
const UNFINISHED_OPERATIONS: [(&str, &str); 6] = [
    ("rebase-merge", "git rebase --abort"),
    ("rebase-apply", "git rebase --abort"),
    ("BISECT_LOG", "git bisect reset"),
    ("CHERRY_PICK_HEAD", "git cherry-pick --abort"),
    ("REVERT_HEAD", "git revert --abort"),
    ("MERGE_HEAD", "git merge --abort"),
];

/// Files of an unfinished rebase with the commit of the branch before it.
const REBASED_FROM: [&str; 2] = ["rebase-merge/orig-head", "rebase-apply/orig-head"];

/// States of the repositories that a command changes, and whether each repository existed.
#[derive(Debug, Default)]
pub(super) struct RepositoryStates {
    /// By resolved path of the git directory. `None` if it was not complete.
    before: BTreeMap<PathBuf, Option<RepositoryState>>,
    /// By resolved path of each `.git`.
    existed: BTreeMap<PathBuf, bool>,
}

/// State of a repository that Undo does not restore.
#[derive(Debug)]
struct RepositoryState {
    head: Option<Head>,
    /// The command that aborts the unfinished operation.
    abort: Option<&'static str>,
    /// The commit of the branch before the unfinished rebase.
    rebased_from: Option<ObjectId>,
    references: References,
}

/// Changes of repositories that Undo does not revert, in sentences.
#[derive(Debug, Default)]
pub(crate) struct RepositoryNotes {
    /// Changes that matter only if Undo is offered for changed files.
    pub(crate) moved: Vec<String>,
    /// Removed repositories, references and entries of logs.
    pub(crate) lost: Vec<String>,
}

impl RepositoryStates {
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
            if is_part(&directory) && STATE_ENTRIES.iter().any(|entry| name == *entry) {
                let before = self.before.entry(tree.path().join(&directory));
                before.or_insert_with(|| RepositoryState::of(&tree, &directory));
            }
            directory.push(name);
        }
    }

    /// Describes the changes to repositories since the last call of this method that Undo does not revert.
    /// Their git commands work in `next_directory`.
    pub(super) fn take_notes(
        &mut self,
        workspace: &Workspace,
        next_directory: &Path,
    ) -> RepositoryNotes {
        let here = repository_of(workspace, next_directory);
        let RepositoryNotes { mut moved, mut lost } = RepositoryNotes::default();
        for (directory, before) in &mut self.before {
            let place = workspace.tree_of(directory);
            let after =
                place.as_ref().and_then(|(tree, relative)| RepositoryState::of(tree, relative));
            if let (Some(before), Some(after), Some((tree, relative))) = (&before, &after, &place) {
                let work_tree = work_tree(tree, relative);
                // Another repository would be changed by the commands as they stand.
                let in_repository = |note: String| match &work_tree {
                    Some(work_tree) if Some(work_tree) != here.as_ref() => {
                        let shown = visible_name(work_tree.as_os_str().as_encoded_bytes());
                        note.replace("`git ", &format!("`git -C {} ", quoted(&shown)))
                    }
                    _ => note,
                };
                let head = moved_head_note(before, after).or_else(|| operation_note(before, after));
                moved.extend(head.map(in_repository));
                let removed = after.references.removed_since(&before.references, tree, relative);
                lost.extend(removed.into_iter().map(in_repository));
                if after.references.has_stashed_since(&before.references) {
                    moved.push(in_repository(STASHED.to_owned()));
                }
            }
            *before = after;
        }
        for (repository, existed) in &mut self.existed {
            let place = workspace.tree_of(repository);
            let exists = place.is_some_and(|(tree, relative)| tree.may_have(&relative));
            let shown = visible_name(repository.as_os_str().as_encoded_bytes());
            match (*existed, exists) {
                (false, true) => {
                    moved.push(format!("{shown} was created; an undo does not remove it"));
                }
                (true, false) => {
                    lost.push(format!("{shown} was removed; an undo does not restore it"));
                }
                _ => {}
            }
            *existed = exists;
        }
        RepositoryNotes { moved, lost }
    }
}

impl RepositoryState {
    fn of(tree: &TreeReader, directory: &Path) -> Option<RepositoryState> {
        git_directory::is_complete(tree, directory, None).then(|| RepositoryState {
            head: head(tree, directory),
            abort: abort_command(tree, directory),
            rebased_from: REBASED_FROM.iter().find_map(|name| {
                let text = git_directory::read(tree, &directory.join(name))?;
                ObjectId::parse(text.trim_ascii())
            }),
            references: References::of(tree, directory),
        })
    }
}

/// The command that aborts the unfinished git operation.
fn abort_command(tree: &TreeReader, directory: &Path) -> Option<&'static str> {
    let found = UNFINISHED_OPERATIONS.iter().find(|(name, _)| tree.may_have(&directory.join(name)));
    found.map(|(_, command)| *command)
}

/// The directory that contains the `.git` of the repository that git uses in a directory.
fn repository_of(workspace: &Workspace, directory: &Path) -> Option<PathBuf> {
    let has_repository = |directory: &&Path| {
        let place = workspace.tree_of(&directory.join(DOT_GIT));
        place.is_some_and(|(tree, relative)| tree.may_have(&relative))
    };
    directory.ancestors().find(has_repository).map(Path::to_owned)
}

/// The work tree of a git directory. `None` if it is not known, as for a submodule.
fn work_tree(tree: &TreeReader, directory: &Path) -> Option<PathBuf> {
    let dot_git = match git_directory::read(tree, &directory.join("gitdir")) {
        Some(path) => PathBuf::from(String::from_utf8(path.trim_ascii().to_vec()).ok()?),
        None => tree.path().join(directory),
    };
    dot_git.ends_with(DOT_GIT).then(|| dot_git.parent().map(Path::to_owned)).flatten()
}

/// A path as a word of a shell command.
fn quoted(path: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "._/@+=-".contains(c);
    if path.chars().all(is_plain) {
        path.into()
    } else {
        format!("'{}'", path.replace('\'', r"'\''")).into()
    }
}

fn head(tree: &TreeReader, directory: &Path) -> Option<Head> {
    let common = git_directory::read(tree, &directory.join(COMMON));
    let common = common
        .and_then(|text| String::from_utf8(text).ok())
        .and_then(|common| git_directory::beneath_root(tree, directory, Path::new(common.trim())));
    git_refs::head(tree, directory, common.as_deref().unwrap_or(directory))
}

fn moved_head_note(before: &RepositoryState, after: &RepositoryState) -> Option<String> {
    let (was, is) = (before.head.as_ref()?, after.head.as_ref()?);
    let (old, new) = (was.commit?, is.commit?);
    if was == is {
        return None;
    }
    let shown = |head: &Head| head.branch.clone().unwrap_or_else(|| "detached".to_owned());
    let back = match (after.abort, before.rebased_from, &was.branch) {
        (Some(command), ..) if after.rebased_from == Some(old) => format!(": `{command}` does"),
        (Some(command), ..) => match after.rebased_from {
            Some(began) => format!(": `{command}` moves it to {}", began.short()),
            None => format!(": `{command}`, then `git reset {}` does", old.short()),
        },
        // The rebase was aborted.
        (None, Some(began), None) if began == new => String::new(),
        (None, Some(began), None) => {
            format!(": `git reset --keep {}` reverts the rebase", began.short())
        }
        (None, _, Some(_)) if was.branch == is.branch => {
            format!(": `git reset {}` does", old.short())
        }
        (None, _, Some(branch)) if after.references.branch(branch) == Some(old) => {
            format!(": `git checkout {branch}` does")
        }
        (None, _, Some(_)) => format!(": `git checkout {}` shows its commit", old.short()),
        (None, None, None) => format!(": `git checkout {}` does", old.short()),
    };
    Some(format!(
        "HEAD moved from {} ({}) to {} ({}); an undo does not move it back{back}",
        old.short(),
        shown(was),
        new.short(),
        shown(is)
    ))
}

/// The note about an operation that the command began and did not finish.
fn operation_note(before: &RepositoryState, after: &RepositoryState) -> Option<String> {
    let command = after.abort.filter(|_| after.abort != before.abort)?;
    let operation = command.split(' ').nth(1)?;
    Some(format!("a {operation} is not finished; an undo does not end it: `{command}` does"))
}
