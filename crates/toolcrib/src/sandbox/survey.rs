//! The directories of a root and the names in them, looked at before each command: what is protected or
//! denied may lie at any depth.
//!
//! A directory that has its old stamp has its old names, so that the second look costs one call for each.
//! The look is bounded, goes from the top down, and goes last to where packages and products of builds lie.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_fs::{EntryKind, Stamp, Tree};

/// More than any directory has that somebody keeps by hand.
const MAX_ENTRIES: usize = 10_000;

/// Where much lies that nobody wrote.
const LAST: [&str; 7] =
    ["node_modules", "target", "vendor", ".venv", "venv", "__pycache__", ".cache"];

/// What a name is that a command is kept from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// What makes programs run code.
    Protected,
    /// What a rule denies to edit.
    Uneditable,
    /// What a rule denies to read.
    Unreadable,
    /// A directory of version control, some of which is protected.
    Repository,
}

/// What names are: by the path from the root. It must say the same each time.
pub(crate) type Classify<'a> = &'a dyn Fn(&Path, EntryKind) -> Option<Found>;

/// What was found where; for all roots of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    by_root: Mutex<HashMap<PathBuf, HashMap<PathBuf, Arc<Listed>>>>,
}

#[derive(Debug)]
struct Listed {
    stamp: Stamp,
    found: Vec<(PathBuf, Found)>,
    /// Where to go on.
    directories: Vec<PathBuf>,
    complete: bool,
}

impl Survey {
    /// Looks into a tree, in at most so many directories, and not into what is found. Answers what that
    /// is, by its path from the root, and whether it is all.
    pub(crate) fn find(
        &self,
        tree: &Tree,
        most: usize,
        classify: Classify<'_>,
    ) -> (Vec<(PathBuf, Found)>, bool) {
        let mut by_root = self.by_root.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_root.entry(tree.path().to_owned()).or_default();
        let mut seen: HashMap<PathBuf, Arc<Listed>> = HashMap::new();
        let mut open = VecDeque::from([PathBuf::new()]);
        let (mut last, mut found, mut complete) = (VecDeque::new(), Vec::new(), true);
        while let Some(directory) = open.pop_front().or_else(|| last.pop_front()) {
            if seen.len() >= most {
                complete = false;
                break;
            }
            let known = known.get(&directory);
            let Some(listed) = list(tree, &directory, known, classify) else { continue };
            complete &= listed.complete;
            found.extend_from_slice(&listed.found);
            for path in &listed.directories {
                let queue = if is_bulk(path) { &mut last } else { &mut open };
                queue.push_back(path.clone());
            }
            seen.insert(directory, listed);
        }
        *known = seen;
        (found, complete)
    }
}

fn is_bulk(path: &Path) -> bool {
    path.file_name().is_some_and(|name| LAST.iter().any(|last| *last == name))
}

/// What is in a directory: as it was known, if it has not changed since.
fn list(
    tree: &Tree,
    directory: &Path,
    known: Option<&Arc<Listed>>,
    classify: Classify<'_>,
) -> Option<Arc<Listed>> {
    let stamp = tree.stamp(directory)?;
    if let Some(known) = known.filter(|known| known.stamp == stamp) {
        return Some(known.clone());
    }
    // One that may be changed once more at what its clock calls the same time is listed again.
    let stamp = stamp.settled();
    let opened = tree.directory(directory).ok()?;
    let (mut found, mut directories, mut count) = (Vec::new(), Vec::new(), 0);
    // What cannot be listed has no names that a command could write.
    let _ = opened.each(|name, kind| {
        let path = directory.join(name);
        count += 1;
        match classify(&path, kind) {
            Some(what) => found.push((path, what)),
            None if kind == EntryKind::Directory => directories.push(path),
            None => {}
        }
        count < MAX_ENTRIES
    });
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    directories.sort_unstable();
    let complete = count < MAX_ENTRIES;
    Some(Arc::new(Listed { stamp, found, directories, complete }))
}
