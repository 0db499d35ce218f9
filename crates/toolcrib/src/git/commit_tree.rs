//! The files of one commit.

use std::collections::HashMap;

use super::find_in_history::{entry, field};
use super::objects::{ObjectId, ObjectKind, ObjectStore};

/// The tree of a commit, read as far as files are looked up.
#[derive(Debug)]
pub(crate) struct CommitTree {
    store: ObjectStore,
    root: ObjectId,
    /// Contents of trees by directory, without a trailing slash. `None` if it has no such directory.
    trees: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

impl CommitTree {
    /// `None` if the commit cannot be read.
    pub(crate) fn of(store: ObjectStore, commit: ObjectId) -> Option<CommitTree> {
        let object = store.read(commit).filter(|object| object.kind == ObjectKind::Commit)?;
        let root = field(&object, b"tree ")?;
        Some(CommitTree { store, root, trees: HashMap::new() })
    }

    /// Mode and object id of a file.
    pub(crate) fn file(&mut self, path: &[u8]) -> Option<(u32, ObjectId)> {
        let (directory, name) = split(path);
        self.load(directory);
        let (mode, id) = entry(self.trees.get(directory)?.as_ref()?, name)?;
        Some((u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?, id))
    }

    /// Reads the tree of a directory and those above it.
    fn load(&mut self, directory: &[u8]) {
        let ends = directory.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = ends.map(|(at, _)| at).chain([directory.len()]);
        for part in [0].into_iter().chain(ends).filter_map(|end| directory.get(..end)) {
            if self.trees.contains_key(part) {
                continue;
            }
            let id = if part.is_empty() {
                Some(self.root)
            } else {
                let (above, name) = split(part);
                let above = self.trees.get(above).and_then(Option::as_ref);
                above.and_then(|tree| entry(tree, name)).map(|(_, id)| id)
            };
            let tree = id.and_then(|id| self.store.read(id));
            let tree = tree.filter(|tree| tree.kind == ObjectKind::Tree).map(|tree| tree.content);
            self.trees.insert(part.to_owned(), tree);
        }
    }
}

/// The directory of a path and its last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}
