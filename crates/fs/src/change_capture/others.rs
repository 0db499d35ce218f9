//! The changes that tools and other programs recorded in the journal while a command ran.
//!
//! The command's own change of a file is what happened before, between and after them.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::journal::{Entry, FileChange, Journal, Version};

/// More changes of one file are not told apart.
const MAX_CHANGES: usize = 100;

/// The recorded changes by path, oldest first.
#[derive(Debug, Default)]
pub(super) struct OthersChanges(BTreeMap<PathBuf, Vec<OthersChange>>);

#[derive(Debug)]
struct OthersChange {
    /// The time when it began.
    time_ms: u64,
    before: Option<Version>,
    after: Option<Version>,
    /// It is being recorded, so the file may not be changed yet.
    is_pending: bool,
}

impl OthersChanges {
    /// The changes with numbers after `id`, and those that are being recorded. None if they cannot be read.
    pub(super) fn since(journal: &Journal, id: u64) -> OthersChanges {
        // In this order: a change that is recorded in the meantime is in one of them.
        let pending = journal.pending_entries().unwrap_or_default();
        let recorded = journal.entries_after(id).unwrap_or_default();
        let tokens: HashSet<&str> = recorded.iter().map(|entry| entry.token.as_str()).collect();
        let pending = pending.iter().filter(|entry| !tokens.contains(entry.token.as_str()));
        let mut changes = OthersChanges::default();
        let is_imported = |entry: &&Entry| entry.imported_ms.is_some();
        for Entry { time_ms, files, .. } in recorded.iter().filter(|entry| !is_imported(entry)) {
            files.iter().for_each(|file| changes.add(*time_ms, file, false));
        }
        for Entry { time_ms, files, .. } in pending {
            files.iter().for_each(|file| changes.add(*time_ms, file, true));
        }
        changes
    }

    fn add(&mut self, time_ms: u64, change: &FileChange, is_pending: bool) {
        let FileChange { before, after, .. } = *change;
        let others = OthersChange { time_ms, before, after, is_pending };
        self.0.entry(change.path()).or_default().push(others);
    }

    /// The command's parts of a change of a file that it reported first at `touched_ms`. `None` if there are too many.
    pub(super) fn own_parts(
        &self,
        change: &FileChange,
        touched_ms: u64,
    ) -> Option<Vec<FileChange>> {
        let path = change.path();
        let FileChange { before, after, .. } = *change;
        let mut parts = Vec::new();
        let mut part = |before: Option<Version>, after: Option<Version>| {
            if before != after {
                parts.push(FileChange::new(&path, before, after));
            }
        };
        let mut at = before;
        let others = self.during(&path, before, touched_ms);
        if others.len() > MAX_CHANGES {
            return None;
        }
        let is_made = |other: &&OthersChange| !(other.is_pending && other.before == after);
        for other in others.iter().filter(is_made) {
            part(at, other.before);
            at = other.after;
        }
        part(at, after);
        Some(parts)
    }

    /// The changes of a file after it was `before`, which the command found at `touched_ms`.
    fn during(&self, path: &Path, before: Option<Version>, touched_ms: u64) -> &[OthersChange] {
        let all = self.0.get(path).map(Vec::as_slice).unwrap_or_default();
        let is_later = |other: &OthersChange| other.time_ms >= touched_ms || other.before == before;
        let later = &all[all.iter().position(is_later).unwrap_or(all.len())..];
        let last_before = later.iter().rposition(|other| other.after == before);
        &later[last_before.map_or(0, |at| at + 1)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;

    fn version(text: &str) -> Option<Version> {
        let content = || Content::from(text.as_bytes().to_vec());
        (!text.is_empty()).then(|| Version::of(&content(), 0o644))
    }

    /// A change, in letters for versions. A blank is no file.
    fn change(text: &str) -> FileChange {
        let (before, after) = text.split_at(1);
        FileChange::new(Path::new("/f"), version(before.trim()), version(after.trim()))
    }

    /// The parts of a change. Changes of others are in capitals if they are pending.
    fn parts(others: &[(u64, &str)], own: &str) -> Vec<FileChange> {
        let mut all = OthersChanges::default();
        for (time, text) in others {
            let is_pending = text.to_lowercase() != *text;
            all.add(*time, &change(&text.to_lowercase()), is_pending);
        }
        all.own_parts(&change(own), 10).unwrap()
    }

    fn expected(parts: &[&str]) -> Vec<FileChange> {
        parts.iter().map(|text| change(text)).collect()
    }

    #[test]
    fn the_changes_of_others_are_left_out() {
        assert_eq!(parts(&[], "ab"), expected(&["ab"]));
        assert_eq!(parts(&[(11, "bc")], "ac"), expected(&["ab"]));
        assert_eq!(parts(&[(11, "bc")], "ad"), expected(&["ab", "cd"]));
        assert_eq!(parts(&[(11, "bc"), (12, "de")], "ae"), expected(&["ab", "cd"]));
        assert_eq!(parts(&[(11, "bc")], " c"), expected(&[" b"]));
        assert_eq!(parts(&[(11, " c")], "ac"), expected(&["a "]));
        assert_eq!(parts(&[(11, "ac")], "ac"), expected(&[]));
        // It is about to be made, or was just made.
        assert_eq!(parts(&[(11, "BC")], "ab"), expected(&["ab"]));
        assert_eq!(parts(&[(11, "BC")], "ac"), expected(&["ab"]));
        // It began before the command touched the file.
        assert_eq!(parts(&[(9, "ac")], "ad"), expected(&["cd"]));
    }

    #[test]
    fn earlier_changes_of_others_do_not_count() {
        assert_eq!(parts(&[(9, "xa")], "ab"), expected(&["ab"]));
        assert_eq!(parts(&[(10, "xa")], "ab"), expected(&["ab"]));
        // Something else wrote the file after them.
        assert_eq!(parts(&[(9, "xy")], "ab"), expected(&["ab"]));
        assert_eq!(parts(&[(9, "xy"), (9, "ya"), (11, "bc")], "ac"), expected(&["ab"]));
    }
}
