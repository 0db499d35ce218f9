//! State of the repositories before a command, for notes about changes that Undo does not revert: it restores
//! files only, and does not move a head, change a stash, restore a reference, end a merge, or remove or restore a
//! `.git`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{TreeReader, Workspace};
use toolcrib_text::visible_name;

use super::git_files::GitFiles;
use super::git_place::GitPlace;
use super::lost_refs::References;
use crate::git::directory::{self, COMMON};
use crate::git::refs::{self, Head, ObjectId};

/// The note about new stash entries.
const STASHED: &str = "a stash entry was added; an undo does not remove it: `git stash drop` does";

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

const ABORT_REBASE: &str = "git rebase --abort";

/// Entries of a git directory during an unfinished git operation, with the command that aborts it.
const UNFINISHED_OPERATIONS: [(&str, &str); 6] = [
    ("rebase-merge", ABORT_REBASE),
    ("rebase-apply", ABORT_REBASE),
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
    files: GitFiles,
    /// Parts of the repositories that were changed, in words.
    changed_parts: BTreeSet<String>,
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
    /// Moved heads and unfinished operations.
    pub(crate) moved: Vec<String>,
    /// Changes that matter only if Undo is offered for changed files.
    pub(crate) beside_files: Vec<String>,
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
            if is_part(&directory) {
                self.files.before_change(&tree, &directory, name);
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
        let mut notes = RepositoryNotes::default();
        let compared = Compared::all(workspace, &self.before);
        // The previous commits of branches that a note about a head names.
        let mut described = Vec::new();
        for Compared { before, after, place } in &compared {
            let head = moved_head_note(before, after).or_else(|| operation_note(before, after));
            if head.is_some() {
                described.extend(kept_branch_commit(before, after));
                described.extend(before.rebased_from);
            }
            notes.moved.extend(head.map(|note| place.adapt(note, here.as_deref())));
        }
        for Compared { before, after, place } in &compared {
            let branch = after.head.as_ref().and_then(|head| head.branch.as_deref());
            let GitPlace { tree, directory } = place;
            let removed = after.references.removed_since(
                &before.references,
                (tree, directory),
                branch,
                &described,
            );
            notes.lost.extend(removed.into_iter().map(|note| place.adapt(note, here.as_deref())));
            if after.references.has_stashed_since(&before.references) {
                notes.beside_files.push(place.adapt(STASHED.to_owned(), here.as_deref()));
            }
        }
        let mut after: BTreeMap<PathBuf, RepositoryState> =
            compared.into_iter().map(|one| (one.place.path(), one.after)).collect();
        for (directory, state) in &mut self.before {
            *state = after.remove(directory).or_else(|| state_at(workspace, directory));
        }
        self.files.take_notes(workspace, here.as_deref(), &mut notes);
        for (repository, existed) in &mut self.existed {
            let place = workspace.tree_of(repository);
            let exists = place.is_some_and(|(tree, relative)| tree.may_have(&relative));
            let shown = visible_name(repository.as_os_str().as_encoded_bytes());
            match (*existed, exists) {
                (false, true) => {
                    notes
                        .beside_files
                        .push(format!("{shown} was created; an undo does not remove it"));
                }
                (true, false) => {
                    notes.lost.push(format!("{shown} was removed; an undo does not restore it"));
                }
                _ => {}
            }
            *existed = exists;
        }
        notes
    }

    /// The parts of repositories that the command has changed so far and that Undo does not revert, in words.
    pub(super) fn changed_parts(&mut self, workspace: &Workspace) -> Vec<String> {
        for Compared { before, after, .. } in Compared::all(workspace, &self.before) {
            let parts = [
                ("HEAD", before.head != after.head),
                ("branches and tags", !after.references.names_same(&before.references)),
                ("stash", !after.references.stash_same(&before.references)),
                ("unfinished operation", before.abort != after.abort),
            ];
            let changed = parts.into_iter().filter(|(_, is_changed)| *is_changed);
            self.changed_parts.extend(changed.map(|(part, _)| part.to_owned()));
        }
        self.changed_parts.extend(self.files.changed_parts(workspace));
        for (repository, existed) in &self.existed {
            let Some((tree, relative)) = workspace.tree_of(repository) else { continue };
            if tree.may_have(&relative) != *existed {
                self.changed_parts.insert(visible_name(relative.as_os_str().as_encoded_bytes()));
            }
        }
        self.changed_parts.iter().cloned().collect()
    }
}

/// A repository before and after a command.
struct Compared<'a> {
    before: &'a RepositoryState,
    after: RepositoryState,
    place: GitPlace,
}

impl Compared<'_> {
    /// The repositories that were and are complete.
    fn all<'a>(
        workspace: &Workspace,
        before: &'a BTreeMap<PathBuf, Option<RepositoryState>>,
    ) -> Vec<Compared<'a>> {
        let compared = before.iter().filter_map(|(path, before)| {
            let (tree, directory) = workspace.tree_of(path)?;
            let after = RepositoryState::of(&tree, &directory)?;
            Some(Compared { before: before.as_ref()?, after, place: GitPlace { tree, directory } })
        });
        compared.collect()
    }
}

/// The previous commit of the current branch, if it is the same branch as before.
fn kept_branch_commit(before: &RepositoryState, after: &RepositoryState) -> Option<ObjectId> {
    let (was, is) = (before.head.as_ref()?, after.head.as_ref()?);
    was.commit.filter(|_| was.branch == is.branch)
}

/// The current state of the repository with this git directory.
fn state_at(workspace: &Workspace, directory: &Path) -> Option<RepositoryState> {
    let (tree, relative) = workspace.tree_of(directory)?;
    RepositoryState::of(&tree, &relative)
}

impl RepositoryState {
    fn of(tree: &TreeReader, directory: &Path) -> Option<RepositoryState> {
        directory::is_complete(tree, directory, None).then(|| {
            let head = head(tree, directory);
            // Git writes the files of a rebase before it detaches the head.
            let is_detached = head.as_ref().is_some_and(|head| head.branch.is_none());
            let orig_head = |name: &&str| {
                let text = directory::read(tree, &directory.join(name))?;
                ObjectId::parse(text.trim_ascii())
            };
            RepositoryState {
                head,
                abort: abort_command(tree, directory)
                    .filter(|command| is_detached || *command != ABORT_REBASE),
                rebased_from: REBASED_FROM.iter().find_map(orig_head).filter(|_| is_detached),
                references: References::of(tree, directory),
            }
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

fn head(tree: &TreeReader, directory: &Path) -> Option<Head> {
    let common = directory::read(tree, &directory.join(COMMON));
    let common = common
        .and_then(|text| String::from_utf8(text).ok())
        .and_then(|common| directory::beneath_root(tree, directory, Path::new(common.trim())));
    refs::head(tree, directory, common.as_deref().unwrap_or(directory))
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
