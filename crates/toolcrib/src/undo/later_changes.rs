//! The changes of a file after one that is undone.

use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, ContentHash, FileChange, Version};

use super::selection::Selection;
use crate::history::{ChangeLog, HistoryEntry};
use crate::message_names::UNDO;
use crate::phrases::first_of;

/// Changes that are named.
const NAMED: usize = 5;

/// Changes that are listed in the order in which they are to be undone.
const MAX_ORDERED: usize = 10;

/// Finds the changes that an undo keeps.
pub(crate) struct LaterChanges<'a> {
    pub(crate) log: &'a ChangeLog,
    pub(crate) undone: &'a Selection,
    /// Changes of other sessions that work here.
    pub(crate) others: &'a [u64],
}

impl LaterChanges<'_> {
    /// The changes of a file after `id` that are in effect and stay so. Undos are not among them: the effect of an
    /// undo is that another change has none.
    pub(super) fn in_effect(&self, path: &Path, id: u64) -> Vec<u64> {
        let is_undone_now =
            |change: &HistoryEntry| self.undone.changes.iter().any(|one| one.id == change.id);
        let overtaken = self.overtaken(path, id);
        let later = self.log.changes.iter().filter(|change| {
            let is_undo = change.reverted().next().is_some();
            (change.id > id || overtaken.contains(&change.id))
                && !change.undone
                && !is_undo
                && !is_undone_now(change)
        });
        let of_path = later.filter(|change| change.effective_files().any(|one| one.path() == path));
        of_path.map(|change| change.id).collect()
    }

    /// The changes of a file after `id` with smaller ids: a command gets its id when it ends, and others may have changed
    /// the file while it ran. Then the versions fit together in this order only.
    fn overtaken(&self, path: &Path, id: u64) -> Vec<u64> {
        let of_path = |change: &HistoryEntry| {
            let mut files = change.entry.files.iter();
            Some((change.id, files.find(|one| one.path() == path)?.clone()))
        };
        let mut until: Vec<(u64, FileChange)> =
            self.log.changes.iter().filter(|change| change.id <= id).filter_map(of_path).collect();
        let Some((_, it)) = until.pop_if(|(last, _)| *last == id) else { return Vec::new() };
        let follows = |earlier: &FileChange, later: &FileChange| {
            content(earlier.after) == content(later.before)
        };
        if until.last().is_none_or(|(_, before)| follows(before, &it)) {
            return Vec::new();
        }
        let first = until.iter().position(|(_, other)| follows(&it, other));
        first.map_or(Vec::new(), |first| until[first..].iter().map(|(id, _)| *id).collect())
    }

    /// The change after `id` that moved a file, and where the file is now. `None` if there is none.
    pub(super) fn moved(
        &self,
        path: &Path,
        id: u64,
        version: Version,
        exists: impl Fn(&Path) -> bool,
    ) -> Option<(u64, PathBuf)> {
        let is_it = |found: Option<Version>| found.is_some_and(|found| found.hash == version.hash);
        let in_effect = self.in_effect(path, id);
        let changes = self.log.changes.iter().filter(|change| in_effect.contains(&change.id));
        changes.rev().find_map(|change| {
            let was_here = |file: &&FileChange| {
                file.path() == path && is_it(file.before) && file.after.is_none()
            };
            change.effective_files().find(was_here)?;
            let is_there = |file: &&FileChange| {
                file.path() != path && !is_it(file.before) && is_it(file.after)
            };
            let mut there = change.effective_files().filter(is_there).map(FileChange::path);
            Some((change.id, there.find(|path| exists(path))?))
        })
    }

    /// How to undo the later changes of a file and then `id`, and which of them others may need. `None` if there are none.
    pub(super) fn hint(&self, path: &Path, id: u64) -> Option<String> {
        let first = self.to_undo_first(path, id);
        let hint = self.order(&first, id)?;
        Some(match self.of_others(&first) {
            Some(whose) => format!("{hint} {whose}"),
            None => hint,
        })
    }

    /// Which of these changes are by other sessions.
    fn of_others(&self, first: &[u64]) -> Option<String> {
        let others: Vec<u64> =
            first.iter().rev().copied().filter(|id| self.others.contains(id)).collect();
        match others.as_slice() {
            [] => None,
            [one] => Some(format!("Change {one} is by another session, which may need it.")),
            several => {
                let ids = first_of(several, NAMED, u64::to_string);
                Some(format!("Changes {ids} are by other sessions, which may need them."))
            }
        }
    }

    /// How to undo the changes `first`, and then `id`.
    fn order(&self, first: &[u64], id: u64) -> Option<String> {
        let is_in_effect = |change: &&HistoryEntry| {
            change.id >= id && !change.undone && has_effect_after(change, id)
        };
        let all = self.log.changes.iter().filter(is_in_effect).count();
        let is_all_since = first.len() + 1 == all && first.iter().all(|one| *one > id);
        match first {
            [] => None,
            [one] if is_all_since => {
                Some(format!("{UNDO} with id {one} first, or {UNDO} with since {id} for both."))
            }
            [one] => Some(format!("{UNDO} with id {one} first.")),
            several if is_all_since => Some(format!(
                "{UNDO} with since {id} reverts all changes since then, with {}.",
                named(several)
            )),
            several => {
                let ids = first_of(several, MAX_ORDERED, u64::to_string);
                Some(format!("{UNDO} with these ids first, in this order: {ids}."))
            }
        }
    }

    /// The changes and undos of a file that must be undone before `id`, newest first.
    pub(crate) fn to_undo_first(&self, path: &Path, id: u64) -> Vec<u64> {
        let mut changes = self.in_effect(path, id);
        let undos = self.log.changes.iter().filter(|change| {
            let is_undone_now = self.undone.changes.iter().any(|one| one.id == change.id);
            let is_of_path = || change.effective_files().any(|one| one.path() == path);
            let is_undo = change.reverted().any(|reverted| reverted < id);
            change.id > id && !change.undone && !is_undone_now && is_undo && is_of_path()
        });
        changes.extend(undos.map(|change| change.id));
        changes.sort_unstable_by(|one, other| other.cmp(one));
        changes
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
        let overtaken = self.overtaken(path, id);
        let all = || self.log.changes.iter();
        let since = all()
            .filter(|change| change.id == id)
            .chain(all().filter(|change| overtaken.contains(&change.id)))
            .chain(all().filter(|change| change.id > id));
        let of_path = |change: &'_ HistoryEntry| {
            change.entry.files.iter().find(|one| one.path() == path).cloned()
        };
        let versions: Vec<FileChange> = since.filter_map(of_path).collect();
        let is_gapless =
            versions.windows(2).all(|pair| content(pair[0].after) == content(pair[1].before));
        is_gapless && versions.last().is_some_and(|last| Version::is(last.after, was))
    }
}

/// What tells the contents of two versions apart.
fn content(version: Option<Version>) -> Option<(ContentHash, bool)> {
    version.map(|one| (one.hash, one.link))
}

/// Whether a change alters files as they were after the change `id`. An undo of a later change does not.
fn has_effect_after(change: &HistoryEntry, id: u64) -> bool {
    change.reverted().next().is_none() || change.reverted().any(|reverted| reverted < id)
}

/// `change 3`, or `changes 3, 4 and 2 more`.
fn named(changes: &[u64]) -> String {
    let noun = if changes.len() == 1 { "change" } else { "changes" };
    format!("{noun} {}", first_of(changes, NAMED, u64::to_string))
}
