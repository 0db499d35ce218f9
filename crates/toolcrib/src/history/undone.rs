//! Which changes, and which parts of them, later changes have undone.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::Entry;

/// The undone parts of one change.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakenBack {
    all: bool,
    /// At and below these paths.
    at: Vec<PathBuf>,
}

impl TakenBack {
    /// Whether the change is undone at a path.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.all || self.at.iter().any(|at| path.starts_with(at))
    }

    /// Whether a change is undone in part.
    pub(crate) fn is_part_of(&self, entry: &Entry) -> bool {
        !self.is_all_of(entry) && entry.paths().any(|path| self.has(&path))
    }

    /// Whether a change is undone completely.
    pub(crate) fn is_all_of(&self, entry: &Entry) -> bool {
        self.all || (!self.at.is_empty() && entry.paths().all(|path| self.has(&path)))
    }
}

/// The undone parts of each change, as if the changes in `without` did not exist. A change that undoes others
/// can itself only be undone as a whole.
pub(crate) fn taken_back<'a>(
    entries: impl IntoIterator<Item = &'a Entry, IntoIter: DoubleEndedIterator>,
    without: &HashSet<u64>,
) -> HashMap<u64, TakenBack> {
    let mut taken_back: HashMap<u64, TakenBack> = HashMap::new();
    // Newest first: a change that is in effect removes the effect of those that it undoes.
    for entry in entries.into_iter().rev() {
        let stands = taken_back.get(&entry.id).is_none_or(|taken| !taken.all);
        if !stands || without.contains(&entry.id) {
            continue;
        }
        for id in &entry.about.undoes {
            let taken = taken_back.entry(*id).or_default();
            match &entry.about.only {
                None => taken.all = true,
                Some(only) => taken.at.push(only.path()),
            }
        }
    }
    taken_back
}
