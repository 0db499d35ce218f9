//! The changes of a file after one that is undone.

use std::path::Path;

use toolcrib_fs::{Content, FileChange, Version};

use super::selection::Selection;
use crate::history::{ChangeLog, HistoryEntry};
use crate::phrases::first_of;

/// Changes that are named.
const NAMED: usize = 5;

/// Finds the changes that an undo keeps.
pub(super) struct LaterChanges<'a> {
    pub(super) log: &'a ChangeLog,
    pub(super) undone: &'a Selection,
}

impl LaterChanges<'_> {
    /// The changes of a file after `id` that are in effect and stay so. Undos are not among them: the effect of an
    /// undo is that another change has none.
    pub(super) fn in_effect(&self, path: &Path, id: u64) -> Vec<u64> {
        let is_undone_now =
            |change: &HistoryEntry| self.undone.changes.iter().any(|one| one.id == change.id);
        let later = self.log.changes.iter().filter(|change| {
            change.id > id && !change.undone && change.undoes.is_empty() && !is_undone_now(change)
        });
        let of_path = later.filter(|change| change.effective_files().any(|one| one.path() == path));
        of_path.map(|change| change.id).collect()
    }

    /// Describes the later changes that a merge kept in a file. `None` if there are none.
    pub(super) fn kept(&self, path: &Path, id: u64, was: Option<&Content>) -> Option<String> {
        let changes = self.in_effect(path, id);
        let named = named(&changes);
        match (changes.is_empty(), self.is_recorded(path, id, was)) {
            (true, true) => None,
            (true, false) => Some("not made by these tools".to_owned()),
            (false, true) => Some(named),
            (false, false) => Some(format!("{named}, and others not made by these tools")),
        }
    }

    /// Whether recorded changes, including undone ones and undos, account for all differences between the change and
    /// the current content.
    fn is_recorded(&self, path: &Path, id: u64, was: Option<&Content>) -> bool {
        let since = self.log.changes.iter().filter(|change| change.id >= id);
        let of_path = |change: &'_ HistoryEntry| {
            change.entry.files.iter().find(|one| one.path() == path).cloned()
        };
        let versions: Vec<FileChange> = since.filter_map(of_path).collect();
        let content = |version: Option<Version>| version.map(|one| (one.hash, one.link));
        let is_gapless =
            versions.windows(2).all(|pair| content(pair[0].after) == content(pair[1].before));
        is_gapless && versions.last().is_some_and(|last| Version::is(last.after, was))
    }
}

/// `change 3`, or `changes 3, 4 and 2 more`.
pub(super) fn named(changes: &[u64]) -> String {
    let noun = if changes.len() == 1 { "change" } else { "changes" };
    format!("{noun} {}", first_of(changes, NAMED, u64::to_string))
}
