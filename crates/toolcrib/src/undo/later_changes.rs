//! The changes of a file after one that is undone.

use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, FileChange, Version};

use super::file_order::{follows, in_order};
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
        let later = self.after(path, id);
        let is_in_effect = |change: &&HistoryEntry| {
            let is_undo = change.reverted().next().is_some();
            later.contains(&change.id) && !change.undone && !is_undo && !self.is_undone_now(change)
        };
        let of_path =
            |change: &&HistoryEntry| change.effective_files().any(|one| one.path() == path);
        let changes = self.log.changes.iter().filter(is_in_effect).filter(of_path);
        changes.map(|change| change.id).collect()
    }

    /// The changes of a file that were made after `id`.
    fn after(&self, path: &Path, id: u64) -> Vec<u64> {
        let order = in_order(&self.log.changes, path);
        match order.iter().position(|(one, _)| *one == id) {
            Some(at) => order[at + 1..].iter().map(|(id, _)| *id).collect(),
            None => order.into_iter().map(|(one, _)| one).filter(|one| *one > id).collect(),
        }
    }

    fn is_undone_now(&self, change: &HistoryEntry) -> bool {
        self.undone.changes.iter().any(|one| one.id == change.id)
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
        let later = self.after(path, id);
        let undos = self.log.changes.iter().filter(|change| {
            let is_of_path = || change.effective_files().any(|one| one.path() == path);
            let is_undo = change.reverted().any(|reverted| reverted < id);
            later.contains(&change.id)
                && !change.undone
                && !self.is_undone_now(change)
                && is_undo
                && is_of_path()
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
        let order = in_order(&self.log.changes, path);
        let since = match order.iter().position(|(one, _)| *one == id) {
            Some(at) => &order[at..],
            None => return false,
        };
        let is_gapless = since.windows(2).all(|pair| follows(pair[0].1, pair[1].1));
        is_gapless && since.last().is_some_and(|(_, last)| Version::is(last.after, was))
    }
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
