//! The order in which changes of a file were made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{ContentHash, FileChange, Version};

use crate::history::HistoryEntry;

/// The changes of a file with their ids, in the order in which they were made. That mostly is the order of the ids. But a
/// command gets its id when it ends, and others may have changed the file while it ran: its versions then fit before
/// theirs.
pub(super) fn in_order<'a>(changes: &'a [HistoryEntry], path: &Path) -> Vec<(u64, &'a FileChange)> {
    let mut order: Vec<(u64, &FileChange)> = Vec::new();
    for change in changes {
        let Some(it) = change.entry.files.iter().find(|file| file.path() == path) else { continue };
        insert(&mut order, change.id, it);
    }
    order
}

/// The same for several files.
pub(super) fn in_order_by_file(
    changes: &[HistoryEntry],
    paths: impl Iterator<Item = PathBuf>,
) -> HashMap<PathBuf, Vec<(u64, &FileChange)>> {
    let mut orders: HashMap<PathBuf, Vec<(u64, &FileChange)>> =
        paths.map(|path| (path, Vec::new())).collect();
    if orders.is_empty() {
        return orders;
    }
    for change in changes {
        for it in &change.entry.files {
            if let Some(order) = orders.get_mut(&it.path()) {
                insert(order, change.id, it);
            }
        }
    }
    orders
}

fn insert<'a>(order: &mut Vec<(u64, &'a FileChange)>, id: u64, it: &'a FileChange) {
    order.insert(place(order, it), (id, it));
}

/// The place of the next change. Changes that follow each other are not separated.
fn place(order: &[(u64, &FileChange)], it: &FileChange) -> usize {
    if order.last().is_none_or(|(_, last)| follows(last, it)) {
        return order.len();
    }
    let fits_before = |at: &usize| {
        let has_gap = || at.checked_sub(1).is_none_or(|last| !follows(order[last].1, order[*at].1));
        follows(it, order[*at].1) && has_gap()
    };
    (0..order.len()).find(fits_before).unwrap_or(order.len())
}

/// Whether the second change begins with the result of the first.
pub(super) fn follows(first: &FileChange, second: &FileChange) -> bool {
    content(first.after) == content(second.before)
}

/// What tells the contents of two versions apart.
fn content(version: Option<Version>) -> Option<(ContentHash, bool)> {
    version.map(|one| (one.hash, one.link))
}

#[cfg(test)]
mod tests {
    use toolcrib_fs::Content;

    use super::*;

    fn change(before: Option<&str>, after: Option<&str>) -> FileChange {
        let version = |text: &str| Version::of(&Content::from(text.as_bytes().to_vec()), 0o644);
        FileChange::new(Path::new("/f"), before.map(version), after.map(version))
    }

    /// The places of changes that are added one after the other.
    fn order(changes: &[(Option<&str>, Option<&str>)]) -> Vec<u64> {
        let changes: Vec<FileChange> =
            changes.iter().map(|(before, after)| change(*before, *after)).collect();
        let mut order: Vec<(u64, &FileChange)> = Vec::new();
        for (id, it) in (1..).zip(&changes) {
            insert(&mut order, id, it);
        }
        order.into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn a_command_that_ended_after_an_edit_comes_first_if_its_versions_do() {
        let (a, b, c, d) = (Some("a"), Some("b"), Some("c"), Some("d"));
        assert_eq!(order(&[(a, b), (b, c)]), [1, 2]);
        assert_eq!(order(&[(b, c), (a, b)]), [2, 1]);
        assert_eq!(order(&[(b, c), (None, b), (c, d)]), [2, 1, 3]);
        assert_eq!(order(&[(a, b), (c, d), (b, c)]), [1, 3, 2]);
        // Something else changed the file in between.
        assert_eq!(order(&[(a, b), (c, d)]), [1, 2]);
        // The file had the same content before.
        assert_eq!(order(&[(a, b), (b, a), (c, b)]), [1, 2, 3]);
    }
}
