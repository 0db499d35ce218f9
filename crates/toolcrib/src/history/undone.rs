//! Which changes, and what of them, later changes have taken back.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{Entry, KeptPath};

/// What later changes have taken back of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakenBack {
    all: bool,
    /// What is at these paths and beneath them.
    at: Vec<PathBuf>,
}

impl TakenBack {
    /// Whether what the change did at a path was taken back.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.all || self.at.iter().any(|at| path.starts_with(at))
    }

    /// Whether something of a change is left, and something is not.
    pub(crate) fn is_part_of(&self, entry: &Entry) -> bool {
        !self.is_all_of(entry) && entry.paths().any(|path| self.has(&path))
    }

    /// Whether nothing of a change is left.
    pub(crate) fn is_all_of(&self, entry: &Entry) -> bool {
        self.all || (!self.at.is_empty() && entry.paths().all(|path| self.has(&path)))
    }
}

/// What was taken back of each change, as if the changes in `without` were not made. A change that takes back
/// others is itself taken back as a whole or not at all.
pub(crate) fn taken_back<'a>(
    entries: impl IntoIterator<Item = &'a Entry, IntoIter: DoubleEndedIterator>,
    without: &HashSet<u64>,
) -> HashMap<u64, TakenBack> {
    let mut taken_back: HashMap<u64, TakenBack> = HashMap::new();
    // From the newest back: what a change that stands takes back, does not stand.
    for entry in entries.into_iter().rev() {
        let stands = taken_back.get(&entry.id).is_none_or(|taken| !taken.all);
        if !stands || without.contains(&entry.id) {
            continue;
        }
        for id in &entry.about.undoes {
            let taken = taken_back.entry(*id).or_default();
            match &entry.about.only {
                Some(only) => taken.at.push(only.path()),
                None if entry.about.within.is_empty() => taken.all = true,
                None => taken.at.extend(entry.about.within.iter().map(KeptPath::path)),
            }
        }
    }
    taken_back
}
