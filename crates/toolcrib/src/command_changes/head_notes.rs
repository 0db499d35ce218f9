//! Notes about a moved head, with the git command that moves it back.

use std::path::Path;

use toolcrib_fs::BulkReader;
use toolcrib_text::visible_name;

use super::lost_refs::is_plain;
use super::unfinished_operation::UnfinishedOperation;
use crate::git::directory;
use crate::git::refs::{self, Head, ObjectId};

/// Head and unfinished operation of a work tree.
#[derive(Debug, Clone)]
pub(super) struct HeadState {
    pub(super) head: Head,
    pub(super) operation: Option<UnfinishedOperation>,
}

/// Finds the commits of branches after a command.
pub(super) struct Branches<'a> {
    pub(super) tree: &'a BulkReader,
    pub(super) directory: &'a Path,
}

impl HeadState {
    pub(super) fn of(tree: &BulkReader, directory: &Path) -> Option<HeadState> {
        let head = refs::head(tree, directory)?;
        let operation = UnfinishedOperation::of(tree, directory, &head);
        Some(HeadState { head, operation })
    }

    /// The same state after its branch was renamed.
    pub(super) fn with_renamed_branch(&self, old: &str, new: &str) -> HeadState {
        let mut renamed = self.clone();
        if renamed.head.branch.as_deref() == Some(old) {
            renamed.head.branch = Some(new.to_owned());
        }
        renamed
    }
}

impl Branches<'_> {
    pub(super) fn commit(&self, branch: &str) -> Option<ObjectId> {
        let common = directory::common(self.tree, self.directory);
        refs::reference(self.tree, &common, format!("refs/heads/{branch}").as_bytes())
    }

    /// The branch, if the head moved only because commits were added to it: then the command says what it did. Only the
    /// reflog tells this from an amended commit, a reset or a merge.
    fn committed_to<'b>(&self, before: &'b HeadState, after: &HeadState) -> Option<&'b str> {
        let branch = before.head.branch.as_deref()?;
        let is_same = after.head.branch.as_deref() == Some(branch)
            && before.operation.is_none()
            && after.operation.is_none();
        let was = before.head.commit.filter(|_| is_same)?;
        let log = refs::reflog_of(self.tree, self.directory, b"HEAD");
        let at = log.iter().rposition(|entry| entry.commit == was)?;
        let added = log.get(at + 1..)?;
        let is_commits = added.iter().all(|entry| entry.message().starts_with(b"commit: "));
        (is_commits && added.last().map(|entry| entry.commit) == after.head.commit)
            .then_some(branch)
    }
}

/// The note about a head that a command moved. `None` if it did not. With a refused file, git may have left files as they
/// were, and then refuses to check out the previous commit.
pub(super) fn moved_head_note(
    before: &HeadState,
    after: &HeadState,
    branches: &Branches<'_>,
    has_refused_file: bool,
) -> Option<String> {
    let (was, is) = (&before.head, &after.head);
    let is_known = |head: &Head| head.branch.is_some() || head.commit.is_some();
    if was == is || !is_known(was) || !is_known(is) {
        return None;
    }
    if let Some(branch) = branches.committed_to(before, after)
        && let (Some(was), Some(is)) = (was.commit, is.commit)
    {
        let branch = visible_name(branch.as_bytes());
        return Some(format!("HEAD moved from {} to {} ({branch})", was.short(), is.short()));
    }
    let without_files = command_without_files(was, is)
        .filter(|_| has_refused_file && before.operation.is_none() && after.operation.is_none());
    let partly = without_files.as_ref().map_or("", |_| ", but not every file could be written");
    let way_back = without_files.or_else(|| way_back(before, after, branches));
    let way_back = way_back.map_or(String::new(), |way_back| format!(": {way_back}"));
    Some(format!(
        "HEAD moved from {} to {}{partly}; an undo does not move it back{way_back}",
        shown(was),
        shown(is)
    ))
}

/// The note about an operation that a command began and did not finish, or ended without moving the head.
pub(super) fn operation_note(before: &HeadState, after: &HeadState) -> Option<String> {
    if let (Some(ended), None) = (&before.operation, &after.operation) {
        return Some(format!("{} was ended; an undo does not resume it", ended.shown));
    }
    let abort = |state: &HeadState| state.operation.as_ref().map(|operation| operation.abort);
    let operation = after.operation.as_ref().filter(|_| abort(before) != abort(after))?;
    Some(format!(
        "{} is not finished; an undo does not end it: `{}` does",
        operation.shown, operation.abort
    ))
}

/// How to move the head back, in words.
fn way_back(before: &HeadState, after: &HeadState, branches: &Branches<'_>) -> Option<String> {
    let was = &before.head;
    match (&before.operation, &after.operation) {
        (began, Some(operation)) => {
            let UnfinishedOperation { abort, head_after_abort, .. } = operation;
            // The command continued an operation that had begun before it.
            let is_step = began.as_ref().is_some_and(|began| began.abort == *abort);
            if !is_step && head_after_abort == was {
                return Some(format!("`{abort}` does"));
            }
            let then = (!is_step).then(|| command_to(was, head_after_abort, branches)).flatten();
            Some(match then {
                Some(command) => format!("`{abort}`, then {command}"),
                None => format!("`{abort}` moves it to {}", shown(head_after_abort)),
            })
        }
        // It was aborted.
        (Some(began), None) if began.head_after_abort == after.head => None,
        (Some(began), None)
            if began.is_rebase && began.head_after_abort.branch == after.head.branch =>
        {
            let commit = began.head_after_abort.commit?.short();
            Some(format!("`git reset --keep {commit}` reverts the rebase"))
        }
        (_, None) => command_to(was, &after.head, branches),
    }
}

/// The command that moves a head to its previous state, in words. It never moves another branch.
fn command_to(to: &Head, from: &Head, branches: &Branches<'_>) -> Option<String> {
    if to.branch.iter().any(|branch| !is_plain(branch.as_bytes())) {
        return None;
    }
    // Git does not overwrite files that differ from the index, as they mostly do after an undo.
    let checkout =
        |words: String| Some(format!("`git checkout {words}` does, if it comes before the undo"));
    match (&to.branch, to.commit) {
        (Some(branch), Some(commit)) if from.branch.as_ref() == Some(branch) => {
            Some(format!("`git reset {}` does", commit.short()))
        }
        (Some(branch), None) if from.branch.as_ref() == Some(branch) => {
            Some("`git update-ref -d HEAD` does".to_owned())
        }
        (Some(branch), Some(commit)) if branches.commit(branch) == Some(commit) => {
            checkout(branch.clone())
        }
        (Some(branch), Some(commit)) => checkout(format!("-B {branch} {}", commit.short())),
        (Some(branch), None) => branches
            .commit(branch)
            .is_none()
            .then(|| format!("`git symbolic-ref HEAD refs/heads/{branch}` does")),
        (None, Some(commit)) => checkout(commit.short()),
        (None, None) => None,
    }
}

/// The commands that move a head and the index to their previous state, and leave the files to an undo, in words.
fn command_without_files(to: &Head, from: &Head) -> Option<String> {
    let commit = to.commit?.short();
    let head = match &to.branch {
        Some(branch) if !is_plain(branch.as_bytes()) => return None,
        Some(branch) if from.branch.as_ref() == Some(branch) => {
            return Some(format!("after the undo, `git reset -q {commit}` does"));
        }
        Some(branch) => format!("git symbolic-ref HEAD refs/heads/{branch}"),
        None => format!("git update-ref --no-deref HEAD {commit}"),
    };
    Some(format!("after the undo, `{head}` and `git reset -q {commit}` do"))
}

fn shown(head: &Head) -> String {
    let branch = head.branch.as_ref().map(|branch| visible_name(branch.as_bytes()));
    match (branch, head.commit) {
        (Some(branch), Some(commit)) => format!("{} ({branch})", commit.short()),
        (Some(branch), None) => format!("{branch} (no commits)"),
        (None, Some(commit)) => format!("{} (detached)", commit.short()),
        (None, None) => "an unknown commit".to_owned(),
    }
}
