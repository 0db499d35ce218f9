//! Which changes, and which parts of them, later changes have undone.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{Entry, KeptPath};

/// The undone parts of one change.
#[derive(Debug, Clone, Default)]
pub(crate) struct UndoneParts {
    all: bool,
    /// At and below these paths.
    paths: Vec<PathBuf>,
    /// Single hunks of files: the path, and the number of the hunk in it. Earlier versions did not store the number.
    hunks: Vec<(PathBuf, Option<usize>)>,
}

impl UndoneParts {
    /// Whether the change is undone at a path.
    pub(crate) fn includes(&self, path: &Path) -> bool {
        self.all || self.paths.iter().any(|at| path.starts_with(at))
    }

    /// Whether a change is undone in part.
    pub(crate) fn is_part_of(&self, entry: &Entry) -> bool {
        let has_part = || entry.paths().any(|path| self.includes(&path));
        !self.is_all_of(entry) && (!self.hunks.is_empty() || has_part())
    }

    /// The undone hunks of a file, as far as their numbers are known.
    pub(crate) fn hunks_of(&self, path: &Path) -> Vec<usize> {
        let here = self.hunks.iter().filter(|(of, _)| of == path);
        here.filter_map(|(_, hunk)| *hunk).collect()
    }

    /// Whether a change is undone completely.
    pub(crate) fn is_all_of(&self, entry: &Entry) -> bool {
        self.all || (!self.paths.is_empty() && entry.paths().all(|path| self.includes(&path)))
    }
}

/// The undone parts of each change, as if the changes in `without` did not exist. A change that undoes others
/// can itself only be undone as a whole.
pub(crate) fn undone_parts<'a>(
    entries: impl IntoIterator<Item = &'a Entry, IntoIter: DoubleEndedIterator>,
    without: &HashSet<u64>,
) -> HashMap<u64, UndoneParts> {
    let mut undone: HashMap<u64, UndoneParts> = HashMap::new();
    // Newest first: a change that is in effect removes the effect of those that it undoes.
    for entry in entries.into_iter().rev() {
        let is_effective = undone.get(&entry.id).is_none_or(|parts| !parts.all);
        if !is_effective || without.contains(&entry.id) {
            continue;
        }
        for id in &entry.about.undoes {
            let parts = undone.entry(*id).or_default();
            match &entry.about.only {
                Some(only) => parts.paths.push(only.path()),
                None if entry.about.within.is_empty() => parts.all = true,
                None => parts.paths.extend(entry.about.within.iter().map(KeptPath::path)),
            }
        }
        if let Some(id) = entry.about.hunk_of {
            let hunk = entry.about.hunk;
            let hunks = entry.paths().map(|path| (path, hunk));
            undone.entry(id).or_default().hunks.extend(hunks);
        }
    }
    undone
}
