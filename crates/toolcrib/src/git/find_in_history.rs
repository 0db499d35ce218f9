//! Searches commits and their ancestors for a file with given content.

use std::collections::{BinaryHeap, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::objects::{Object, ObjectId, ObjectKind, ObjectStore};

/// Limit of visited commits, newest first. Reading them takes about a second.
const MAX_COMMITS: usize = 30_000;

/// Limit of commits among which an ancestor is searched. A command rarely adds more.
const MAX_ANCESTORS: usize = 2_000;

/// Limit of nested tags.
const MAX_TAGS: usize = 10;

/// Whether the file at `path` had this content in one of these commits or their ancestors. If the history is
/// too long, all given commits and the newest ancestors are searched.
pub(crate) fn contains(
    store: &ObjectStore,
    commits: &[ObjectId],
    path: &Path,
    content: ObjectId,
) -> bool {
    let names: Vec<&[u8]> = path.iter().map(|name| name.as_bytes()).collect();
    let mut search = Search { store, names, content, trees: HashSet::new(), read: 0 };
    let (mut pending, mut seen) = (BinaryHeap::new(), HashSet::new());
    for id in commits {
        match search.visit(*id, &mut seen) {
            Visited::Found => return true,
            Visited::Commit(commit) => pending.push(commit),
            Visited::Nothing => {}
        }
    }
    while let Some(commit) = pending.pop() {
        for parent in commit.parents {
            match search.visit(parent, &mut seen) {
                Visited::Found => return true,
                Visited::Commit(commit) => pending.push(commit),
                Visited::Nothing => {}
            }
        }
    }
    false
}

/// Whether a commit is an ancestor of another, as far as its newest ancestors show.
pub(super) fn is_ancestor(store: &ObjectStore, ancestor: ObjectId, of: ObjectId) -> bool {
    let (mut pending, mut seen) = (BinaryHeap::new(), HashSet::new());
    let mut parents = vec![of];
    loop {
        for id in parents {
            if id == ancestor {
                return true;
            }
            if seen.len() < MAX_ANCESTORS && seen.insert(id) {
                let commit = store.read(id).filter(|one| one.kind == ObjectKind::Commit);
                pending.extend(commit.map(|commit| Commit::of(&commit)));
            }
        }
        let Some(newest) = pending.pop() else { return false };
        parents = newest.parents;
    }
}

struct Search<'a> {
    store: &'a ObjectStore,
    names: Vec<&'a [u8]>,
    content: ObjectId,
    /// Visited trees that do not lead to the content, with their depth.
    trees: HashSet<(usize, ObjectId)>,
    read: usize,
}

enum Visited {
    Found,
    Commit(Commit),
    Nothing,
}

/// A visited commit.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    seconds: i64,
    parents: Vec<ObjectId>,
}

impl Commit {
    fn of(commit: &Object) -> Commit {
        let lines =
            || commit.content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
        let parents = lines().filter_map(|line| ObjectId::parse(line.strip_prefix(b"parent ")?));
        let committer = lines().find(|line| line.starts_with(b"committer "));
        let seconds = committer.and_then(|line| {
            let word = line.rsplit(|byte| *byte == b' ').nth(1)?;
            std::str::from_utf8(word).ok()?.parse().ok()
        });
        Commit { seconds: seconds.unwrap_or(0), parents: parents.collect() }
    }
}

impl Search<'_> {
    fn visit(&mut self, id: ObjectId, seen: &mut HashSet<ObjectId>) -> Visited {
        let mut id = id;
        for _ in 0..MAX_TAGS {
            if self.read >= MAX_COMMITS || !seen.insert(id) {
                return Visited::Nothing;
            }
            self.read += 1;
            let Some(object) = self.store.read(id) else { return Visited::Nothing };
            match object.kind {
                ObjectKind::Commit => return self.visit_commit(&object),
                ObjectKind::Tag => match field(&object, b"object ") {
                    Some(target) => id = target,
                    None => return Visited::Nothing,
                },
                ObjectKind::Tree | ObjectKind::Blob => return Visited::Nothing,
            }
        }
        Visited::Nothing
    }

    fn visit_commit(&mut self, commit: &Object) -> Visited {
        let Some(tree) = field(commit, b"tree ") else { return Visited::Nothing };
        if self.leads_to_content(tree) {
            return Visited::Found;
        }
        Visited::Commit(Commit::of(commit))
    }

    fn leads_to_content(&mut self, root: ObjectId) -> bool {
        let mut tree = root;
        for depth in 0..self.names.len() {
            if !self.trees.insert((depth, tree)) {
                return false;
            }
            let Some(object) = self.store.read(tree).filter(|one| one.kind == ObjectKind::Tree)
            else {
                return false;
            };
            let is_last = depth + 1 == self.names.len();
            match entry(&object.content, self.names[depth]) {
                Some((mode, id)) if is_last => {
                    return mode.starts_with(b"100") && id == self.content;
                }
                Some((b"40000", id)) => tree = id,
                _ => return false,
            }
        }
        false
    }
}

/// The object id in a field of a commit or tag.
pub(super) fn field(object: &Object, name: &[u8]) -> Option<ObjectId> {
    let lines = object.content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let value = lines.filter_map(|line| line.strip_prefix(name)).next()?;
    ObjectId::parse(value)
}

/// Mode and object id of an entry of a tree.
pub(super) fn entry<'a>(mut tree: &'a [u8], name: &[u8]) -> Option<(&'a [u8], ObjectId)> {
    while !tree.is_empty() {
        let space = tree.iter().position(|byte| *byte == b' ')?;
        let end = tree.iter().position(|byte| *byte == 0)?;
        let (mode, found) = (tree.get(..space)?, tree.get(space + 1..end)?);
        let id = tree.get(end + 1..end + 21)?;
        if found == name {
            return Some((mode, ObjectId::from_bytes(id)?));
        }
        tree = tree.get(end + 21..)?;
    }
    None
}
