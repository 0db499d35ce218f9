//! State of the repositories before a command, for notes about changes that Undo does not revert: it restores
//! files only, and does not move a head, change a stash, restore a reference, end a merge, or remove or restore a
//! `.git`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{BulkReader, Workspace};
use toolcrib_text::visible_name;

use super::git_directory::GitPlace;
use super::head_notes::{Branches, HeadState, moved_head_note, operation_note};
use super::index_and_config::GitFiles;
use super::lost_refs::{References, RenamedBranch};
use super::work_trees::{AddedWorkTree, WorkTrees};
use crate::git::directory::{self, DOT_GIT};
use crate::git::refs::ObjectId;

/// Limit of observed repositories.
const MAX_HEADS: usize = 8;

/// Limit of refused files that are remembered.
const MAX_REFUSED: usize = 64;

/// Names in a git directory that change with its head, its references or an unfinished operation.
const STATE_ENTRIES: [&str; 10] = [
    "BISECT_LOG",
    "CHERRY_PICK_HEAD",
    "HEAD",
    "MERGE_HEAD",
    "REVERT_HEAD",
    "logs",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
];

/// States of the repositories that a command changes, and whether each repository existed.
#[derive(Debug, Default)]
pub(super) struct RepositoryStates {
    /// By resolved path of the git directory. `None` if it was not complete.
    before: BTreeMap<PathBuf, Option<RepositoryState>>,
    /// By resolved path of each `.git`.
    existed: BTreeMap<PathBuf, bool>,
    work_trees: WorkTrees,
    files: GitFiles,
    /// Parts of the repositories that were changed, in words.
    changed_parts: BTreeSet<String>,
    /// The first files outside of git directories that the command was refused to change since the last notes. Git goes on
    /// then.
    refused: BTreeSet<PathBuf>,
}

/// State of a repository that Undo does not restore.
#[derive(Debug)]
struct RepositoryState {
    head: Option<HeadState>,
    references: References,
}

/// Changes of repositories that Undo does not revert, in sentences.
#[derive(Debug, Default)]
pub(crate) struct RepositoryNotes {
    /// Moved heads, unfinished operations, added work trees and stash entries.
    pub(crate) moved: Vec<String>,
    /// Changes that matter only if Undo is offered for changed files.
    pub(crate) beside_files: Vec<String>,
    /// Removed repositories, references and entries of logs, and renamed branches.
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
        self.work_trees.before_change(&tree, &relative);
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

    /// Called if the command may not change a path.
    pub(super) fn note_refused(&mut self, path: &Path) {
        if self.refused.len() < MAX_REFUSED && !path.iter().any(|name| name == DOT_GIT) {
            self.refused.insert(path.to_owned());
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
        let compared = self.compared(workspace);
        let renamed: Vec<Vec<RenamedBranch>> = compared.iter().map(Compared::renamed).collect();
        // The previous commits of branches that a note about a head names.
        let mut described = Vec::new();
        // The git directories whose index is restored with the head.
        let mut restored = Vec::new();
        for one in &compared {
            // Linked work trees share their branches.
            let same = compared
                .iter()
                .zip(&renamed)
                .filter(|(other, _)| other.place.common() == one.place.common());
            let renamed = same.flat_map(|(_, renamed)| renamed);
            let has_refused_file = self.refused.iter().any(|path| one.place.may_have(path));
            let head = one.head_note(renamed, has_refused_file);
            if head.is_some() {
                described.extend(one.described_commits());
                restored.push(one.place.path());
            }
            notes.moved.extend(head.map(|note| one.place.adapt(note, here.as_deref())));
        }
        for (Compared { before, after, place }, renamed) in compared.iter().zip(&renamed) {
            let head = after.branch();
            let GitPlace { tree, directory } = place;
            let removed = after.references.removed_since(
                &before.references,
                (tree, directory),
                head,
                renamed,
                &described,
            );
            notes.lost.extend(removed.into_iter().map(|note| place.adapt(note, here.as_deref())));
            let stashed = stashed_note(after.references.stashed_since(&before.references));
            notes.moved.extend(stashed.map(|note| place.adapt(note, here.as_deref())));
        }
        let mut after: BTreeMap<PathBuf, RepositoryState> =
            compared.into_iter().map(|one| (one.place.path(), one.after)).collect();
        for (directory, state) in &mut self.before {
            *state = after.remove(directory).or_else(|| state_at(workspace, directory));
        }
        self.files.take_notes(workspace, here.as_deref(), &restored, &mut notes);
        let added = self.work_trees.take_added(workspace);
        for work_tree in &added {
            let note = work_tree.note(next_directory);
            notes.moved.push(work_tree.place.adapt(note, here.as_deref()));
        }
        self.take_existence_notes(workspace, &added, &mut notes);
        self.refused.clear();
        notes
    }

    /// Adds notes about created and removed repositories. The work trees `added` have their own notes.
    fn take_existence_notes(
        &mut self,
        workspace: &Workspace,
        added: &[AddedWorkTree],
        notes: &mut RepositoryNotes,
    ) {
        for (repository, existed) in &mut self.existed {
            let place = workspace.tree_of(repository);
            let exists = place.is_some_and(|(tree, relative)| tree.may_have(&relative));
            let shown = visible_name(repository.as_os_str().as_encoded_bytes());
            let is_added = added.iter().any(|work_tree| work_tree.dot_git == *repository);
            match (*existed, exists) {
                (false, true) if is_added => {}
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
    }

    /// The repositories that were and are complete, and that the command did not make.
    fn compared(&self, workspace: &Workspace) -> Vec<Compared<'_>> {
        let compared = self.before.iter().filter_map(|(path, before)| {
            if self.work_trees.is_new(path) {
                return None;
            }
            let (tree, directory) = workspace.tree_of(path)?;
            let after = RepositoryState::of(&tree, &directory)?;
            Some(Compared { before: before.as_ref()?, after, place: GitPlace { tree, directory } })
        });
        compared.collect()
    }

    /// The parts of repositories that the command has changed so far and that Undo does not revert, in words.
    pub(super) fn changed_parts(&mut self, workspace: &Workspace) -> Vec<String> {
        let head = |state: &RepositoryState| state.head.as_ref().map(|state| state.head.clone());
        let operation = |state: &RepositoryState| {
            state.head.as_ref().and_then(|state| Some(state.operation.as_ref()?.abort))
        };
        let mut parts_changed = Vec::new();
        for Compared { before, after, .. } in self.compared(workspace) {
            let parts = [
                ("HEAD", head(before) != head(&after)),
                ("branches and tags", !after.references.names_same(&before.references)),
                ("stash", !after.references.stash_same(&before.references)),
                ("unfinished operation", operation(before) != operation(&after)),
            ];
            let changed = parts.into_iter().filter(|(_, is_changed)| *is_changed);
            parts_changed.extend(changed.map(|(part, _)| part.to_owned()));
        }
        parts_changed.extend(self.files.changed_parts(workspace));
        let added = self.work_trees.added(workspace);
        parts_changed.extend(added.iter().map(|work_tree| work_tree.part()));
        self.changed_parts.extend(parts_changed);
        for (repository, existed) in &self.existed {
            if added.iter().any(|work_tree| work_tree.dot_git == *repository) {
                continue;
            }
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
    fn renamed(&self) -> Vec<RenamedBranch> {
        let GitPlace { tree, directory } = &self.place;
        let heads = (self.before.branch(), self.after.branch());
        self.after.references.renamed_since(&self.before.references, (tree, directory), heads)
    }

    /// The note about the head or an unfinished operation. A renamed branch has its own note.
    fn head_note<'r>(
        &self,
        renamed: impl Iterator<Item = &'r RenamedBranch>,
        has_refused_file: bool,
    ) -> Option<String> {
        let (before, after) = (self.before.head.as_ref()?, self.after.head.as_ref()?);
        let GitPlace { tree, directory } = &self.place;
        let mut renamed = renamed.filter(|one| before.head.branch.as_ref() == Some(&one.old));
        let before = match renamed.next() {
            Some(one) => &before.with_renamed_branch(&one.old, &one.new),
            None => before,
        };
        moved_head_note(before, after, &Branches { tree, directory }, has_refused_file)
            .or_else(|| operation_note(before, after))
    }

    /// The previous commits of branches that the command of the note about the head moves back.
    fn described_commits(&self) -> impl Iterator<Item = ObjectId> {
        let GitPlace { tree, directory } = &self.place;
        let branches = Branches { tree, directory };
        let before = self.before.head.as_ref();
        let on_branch = before.filter(|state| {
            let branch = state.head.branch.as_ref();
            branch.is_some_and(|branch| branches.commit(branch) != state.head.commit)
        });
        let operation = before.and_then(|state| state.operation.as_ref());
        let rebase = operation.filter(|operation| operation.is_rebase);
        let commits = [
            on_branch.and_then(|state| state.head.commit),
            rebase.and_then(|operation| operation.head_after_abort.commit),
        ];
        commits.into_iter().flatten()
    }
}

/// The current state of the repository with this git directory.
fn state_at(workspace: &Workspace, directory: &Path) -> Option<RepositoryState> {
    let (tree, relative) = workspace.tree_of(directory)?;
    RepositoryState::of(&tree, &relative)
}

impl RepositoryState {
    fn of(tree: &BulkReader, directory: &Path) -> Option<RepositoryState> {
        directory::is_complete(tree, directory, None).then(|| RepositoryState {
            head: HeadState::of(tree, directory),
            references: References::of(tree, directory),
        })
    }

    /// The current branch.
    fn branch(&self) -> Option<&str> {
        self.head.as_ref()?.head.branch.as_deref()
    }
}

/// The directory that contains the `.git` of the repository that git uses in a directory.
fn repository_of(workspace: &Workspace, directory: &Path) -> Option<PathBuf> {
    let has_repository = |directory: &&Path| {
        let place = workspace.tree_of(&directory.join(DOT_GIT));
        place.is_some_and(|(tree, relative)| tree.may_have(&relative))
    };
    directory.ancestors().find(has_repository).map(Path::to_owned)
}

/// The note about new stash entries. `None` if there are none.
fn stashed_note(added: usize) -> Option<String> {
    match added {
        0 => None,
        1 => Some("a stash entry was added: `git stash pop` restores its changes; after an undo, `git stash drop` removes it".to_owned()),
        _ => Some(format!("{added} stash entries were added: `git stash pop` restores the changes of the newest; after an undo, `git stash drop` removes it")),
    }
}
