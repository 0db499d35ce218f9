//! Unfinished git operations: merges, rebases and the like that stopped.

use std::path::Path;

use toolcrib_fs::BulkReader;

use crate::git::directory;
use crate::git::refs::{self, Head, ObjectId};

/// An operation that git has begun and not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnfinishedOperation {
    /// The operation with its article.
    pub(super) shown: &'static str,
    /// The command that aborts it.
    pub(super) abort: &'static str,
    /// The head after that command.
    pub(super) head_after_abort: Head,
    pub(super) is_rebase: bool,
}

/// A kind of operation.
struct Kind {
    /// Exists in the git directory during the operation.
    entry: &'static str,
    shown: &'static str,
    abort: &'static str,
}

/// More specific ones first.
const KINDS: [Kind; 7] = [
    Kind { entry: "rebase-merge", shown: "a rebase", abort: "git rebase --abort" },
    Kind { entry: "rebase-apply/applying", shown: "a git am", abort: "git am --abort" },
    Kind { entry: "rebase-apply", shown: "a rebase", abort: "git rebase --abort" },
    Kind { entry: "BISECT_LOG", shown: "a bisect", abort: "git bisect reset" },
    Kind { entry: "CHERRY_PICK_HEAD", shown: "a cherry-pick", abort: "git cherry-pick --abort" },
    Kind { entry: "REVERT_HEAD", shown: "a revert", abort: "git revert --abort" },
    Kind { entry: "MERGE_HEAD", shown: "a merge", abort: "git merge --abort" },
];

/// Prefix of the names of branches.
const BRANCHES: &str = "refs/heads/";

impl UnfinishedOperation {
    /// The operation of the work tree with this git directory and head.
    pub(super) fn of(
        tree: &BulkReader,
        directory: &Path,
        head: &Head,
    ) -> Option<UnfinishedOperation> {
        let kind = KINDS.iter().find(|kind| tree.may_have(&directory.join(kind.entry)))?;
        let text = |name: &str| {
            let text = directory::read(tree, &directory.join(name))?;
            Some(String::from_utf8(text).ok()?.trim().to_owned())
        };
        let commit = |name: &str| ObjectId::parse(text(name)?.as_bytes());
        let at = |commit: Option<ObjectId>| Head { commit: commit.or(head.commit), ..head.clone() };
        let (is_rebase, head_after_abort) = match kind.entry {
            entry @ ("rebase-merge" | "rebase-apply") => {
                let branch = text(&format!("{entry}/head-name"))?;
                let branch = branch.strip_prefix(BRANCHES).map(str::to_owned);
                // Git writes these files before it detaches the head.
                let is_begun = head.branch.is_none();
                let commit = commit(&format!("{entry}/orig-head")).filter(|_| is_begun)?;
                (true, Head { branch, commit: Some(commit) })
            }
            "rebase-apply/applying" => (false, at(commit("ORIG_HEAD"))),
            "BISECT_LOG" => {
                let start = text("BISECT_START")?;
                let common = directory::common(tree, directory);
                let name = [BRANCHES, &start].concat();
                let on_branch = refs::reference(tree, &common, name.as_bytes());
                let detached = ObjectId::parse(start.as_bytes());
                let branch = on_branch.map(|_| start);
                (false, Head { branch, commit: on_branch.or(detached) })
            }
            // A series of commits. For a single one there is no such file.
            "CHERRY_PICK_HEAD" | "REVERT_HEAD" => (false, at(commit("sequencer/head"))),
            _ => (false, head.clone()),
        };
        Some(UnfinishedOperation {
            shown: kind.shown,
            abort: kind.abort,
            head_after_abort,
            is_rebase,
        })
    }
}
