//! Commits that a repository refers to: branches, tags, stashes and reflogs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use toolcrib_fs::{BulkReader, EntryKind, WholeRead};

pub(crate) use super::objects::ObjectId;
use super::objects::ObjectStore;
use super::{directory, find_in_history};

/// More than a repository with a hundred thousand branches has.
const MAX_BYTES: u64 = 16 << 20;

/// Limit of loose references.
const MAX_REFERENCES: usize = 20_000;

/// Limit of loose branches and tags that are compared around a command. Each is a file to read.
const MAX_LOOSE: usize = 2_000;

/// Prefixes of branches and tags.
const FOLLOWED: [&str; 2] = ["refs/heads/", "refs/tags/"];

/// File of the packed references.
const PACKED: &str = "packed-refs";

/// Limit of the newest entries of a reflog.
const MAX_LOGGED: usize = 500;

/// Limit of work trees per repository.
const MAX_WORK_TREES: usize = 100;

/// Head of a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Name of the branch. `None` if the head is detached.
    pub(crate) branch: Option<String>,
    /// `None` for a branch without commits.
    pub(crate) commit: Option<ObjectId>,
}

/// Commits that a git directory refers to. References come before reflogs.
pub(crate) fn tips(tree: &BulkReader, directory: &Path) -> Vec<ObjectId> {
    let mut tips = Vec::new();
    let own = |tips: &mut Vec<ObjectId>, directory: &Path| {
        for name in ["HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD"] {
            tips.extend(read(tree, &directory.join(name)).iter().flat_map(|text| ids(text)));
        }
    };
    own(&mut tips, directory);
    if let Some(text) = read(tree, &directory.join(PACKED)) {
        tips.extend(ids(&text));
    }
    for path in files(tree, &directory.join("refs")) {
        tips.extend(read(tree, &path).iter().flat_map(|text| ids(text)));
    }
    tips.extend(logged(tree, &directory.join("logs/HEAD")));
    tips.extend(logged(tree, &directory.join("logs/refs/stash")));
    let worktrees = directory.join("worktrees");
    let mut names = Vec::new();
    if let Ok(listed) = tree.directory(&worktrees) {
        // Unlistable work trees are ignored.
        let _ = listed.each(|name, _| {
            names.push(worktrees.join(name));
            names.len() < MAX_WORK_TREES
        });
    }
    for name in names {
        own(&mut tips, &name);
        tips.extend(logged(tree, &name.join("logs/HEAD")));
    }
    tips
}

/// Head of the work tree with this git directory.
pub(crate) fn head(tree: &BulkReader, directory: &Path) -> Option<Head> {
    let text = String::from_utf8(read(tree, &directory.join("HEAD"))?).ok()?;
    let Some(name) = text.trim().strip_prefix("ref:").map(str::trim) else {
        return Some(Head { branch: None, commit: ObjectId::parse(text.trim().as_bytes()) });
    };
    let commit = reference(tree, &directory::common(tree, directory), name.as_bytes());
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    Some(Head { branch: Some(branch), commit })
}

/// Commit of a reference in the git directory with the shared references.
pub(crate) fn reference(tree: &BulkReader, directory: &Path, name: &[u8]) -> Option<ObjectId> {
    let is_plain =
        name.starts_with(b"refs/") && !name.split(|byte| *byte == b'/').any(|part| part == b"..");
    let loose = is_plain.then(|| read(tree, &directory.join(OsStr::from_bytes(name)))).flatten();
    match loose {
        Some(text) => ObjectId::parse(text.trim_ascii()),
        None => {
            let text = read(tree, &directory.join(PACKED)).unwrap_or_default();
            packed(&text).find(|(packed, _)| *packed == name).map(|(_, commit)| commit)
        }
    }
}

/// Branches and tags of a git directory by full name, as many as are limited for one repository.
pub(crate) fn branches_and_tags(
    tree: &BulkReader,
    directory: &Path,
) -> BTreeMap<Vec<u8>, ObjectId> {
    let text = read(tree, &directory.join(PACKED)).unwrap_or_default();
    let is_followed =
        |name: &[u8]| FOLLOWED.iter().any(|prefix| name.starts_with(prefix.as_bytes()));
    let packed = packed(&text).filter(|(name, _)| is_followed(name)).take(MAX_REFERENCES);
    let mut named: BTreeMap<Vec<u8>, ObjectId> =
        packed.map(|(name, commit)| (name.to_owned(), commit)).collect();
    let loose = FOLLOWED.iter().flat_map(|prefix| files(tree, &directory.join(prefix)));
    for path in loose.take(MAX_LOOSE) {
        let Ok(name) = path.strip_prefix(directory) else { continue };
        let commit = read(tree, &path).and_then(|text| ObjectId::parse(text.trim_ascii()));
        named.extend(commit.map(|commit| (name.as_os_str().as_bytes().to_owned(), commit)));
    }
    named
}

/// An entry of the log of a reference. It is compared without the previous commit, which git rewrites when it removes
/// the entry before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LogEntry {
    pub(crate) commit: ObjectId,
    /// Author, time and message.
    details: Vec<u8>,
}

impl LogEntry {
    pub(crate) fn message(&self) -> &[u8] {
        let tab = self.details.iter().position(|byte| *byte == b'\t');
        tab.and_then(|tab| self.details.get(tab + 1..)).unwrap_or_default()
    }
}

/// The log at a path, the oldest entry first.
pub(crate) fn reflog(tree: &BulkReader, path: &Path) -> Vec<LogEntry> {
    let text = read(tree, path).unwrap_or_default();
    let entry = |line: &[u8]| {
        let commit = ObjectId::parse(line.get(41..81)?)?;
        Some(LogEntry { commit, details: line.get(81..)?.to_owned() })
    };
    text.split(|byte| *byte == b'\n').filter_map(entry).collect()
}

/// The log of a reference.
pub(crate) fn reflog_of(tree: &BulkReader, directory: &Path, name: &[u8]) -> Vec<LogEntry> {
    reflog(tree, &directory.join("logs").join(OsStr::from_bytes(name)))
}

/// Whether a git directory itself has an object. Alternate object directories are not searched.
pub(crate) fn has_object(tree: &BulkReader, directory: &Path, id: ObjectId) -> bool {
    store(tree, directory).has(id)
}

/// Whether a commit is an ancestor of another in a git directory.
pub(crate) fn is_ancestor(
    tree: &BulkReader,
    directory: &Path,
    ancestor: ObjectId,
    of: ObjectId,
) -> bool {
    find_in_history::is_ancestor(&store(tree, directory), ancestor, of)
}

/// The objects of a git directory. A work tree shares those of its repository.
fn store(tree: &BulkReader, directory: &Path) -> ObjectStore {
    let common = directory::common(tree, directory);
    ObjectStore::new(vec![(tree.clone(), common.join("objects"))])
}

/// Names and commits of packed references.
fn packed(text: &[u8]) -> impl Iterator<Item = (&[u8], ObjectId)> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let name = line.get(40..)?.strip_prefix(b" ")?;
        Some((name, ObjectId::parse(line.get(..40)?)?))
    })
}

/// Object ids at the beginning of lines. In packed references, `^` precedes the target of a tag.
fn ids(text: &[u8]) -> impl Iterator<Item = ObjectId> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_prefix(b"^").unwrap_or(line);
        ObjectId::parse(line.get(..40)?)
    })
}

/// The newest commits of a reflog. Each line has the old and the new one.
fn logged(tree: &BulkReader, path: &Path) -> Vec<ObjectId> {
    let text = read(tree, path).unwrap_or_default();
    let lines = text.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let pair =
        |line: &[u8]| [line.get(..40), line.get(41..81)].map(|id| id.and_then(ObjectId::parse));
    lines.take(MAX_LOGGED).flat_map(pair).flatten().collect()
}

/// Files below a directory.
fn files(tree: &BulkReader, directory: &Path) -> Vec<PathBuf> {
    let (mut pending, mut found) = (vec![directory.to_owned()], Vec::new());
    while let Some(directory) = pending.pop() {
        let Ok(listed) = tree.directory(&directory) else { continue };
        // Unlistable directories are ignored.
        let _ = listed.each(|name, kind| {
            let path = directory.join(name);
            match kind {
                EntryKind::Directory => pending.push(path),
                _ => found.push(path),
            }
            found.len() + pending.len() < MAX_REFERENCES
        });
    }
    found.truncate(MAX_REFERENCES);
    found
}

fn read(tree: &BulkReader, path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let taken = tree.directory(path.parent()?).ok()?.take(path.file_name()?, MAX_BYTES, &mut bytes);
    matches!(taken, Ok(WholeRead::Whole(_))).then_some(bytes)
}
