//! Commits that a repository refers to: branches, tags, stashes and reflogs.

use std::path::{Path, PathBuf};

use toolcrib_fs::{EntryKind, TreeReader, WholeRead};

pub(crate) use super::git_objects::ObjectId;

/// More than a repository with a hundred thousand branches has.
const MAX_BYTES: u64 = 16 << 20;

/// Limit of loose references.
const MAX_REFERENCES: usize = 20_000;

/// Limit of the newest entries of a reflog.
const MAX_LOGGED: usize = 500;

/// Limit of work trees per repository.
const MAX_WORK_TREES: usize = 100;

/// Head of a work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Name of the branch. `None` if the head is detached.
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<ObjectId>,
}

/// Commits that a git directory refers to. References come before reflogs.
pub(super) fn tips(tree: &TreeReader, directory: &Path) -> Vec<ObjectId> {
    let mut tips = Vec::new();
    let own = |tips: &mut Vec<ObjectId>, directory: &Path| {
        for name in ["HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD"] {
            tips.extend(read(tree, &directory.join(name)).iter().flat_map(|text| ids(text)));
        }
    };
    own(&mut tips, directory);
    if let Some(text) = read(tree, &directory.join("packed-refs")) {
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

/// Head of a work tree. `common` is the git directory with the shared references.
pub(crate) fn head(tree: &TreeReader, directory: &Path, common: &Path) -> Option<Head> {
    let text = String::from_utf8(read(tree, &directory.join("HEAD"))?).ok()?;
    let Some(name) = text.trim().strip_prefix("ref:").map(str::trim) else {
        return Some(Head { branch: None, commit: ObjectId::parse(text.trim().as_bytes()) });
    };
    let is_plain = name.starts_with("refs/") && !name.split('/').any(|part| part == "..");
    let loose = is_plain.then(|| read(tree, &common.join(name))).flatten();
    let commit = match loose {
        Some(text) => ObjectId::parse(text.trim_ascii()),
        None => packed(&read(tree, &common.join("packed-refs")).unwrap_or_default(), name),
    };
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    Some(Head { branch: Some(branch), commit })
}

fn packed(text: &[u8], name: &str) -> Option<ObjectId> {
    let line = text.split(|byte| *byte == b'\n').find(|line| {
        line.get(41..).is_some_and(|rest| rest == name.as_bytes()) && line.get(40) == Some(&b' ')
    })?;
    ObjectId::parse(line.get(..40)?)
}

/// Object ids at the beginning of lines. In packed references, `^` precedes the target of a tag.
fn ids(text: &[u8]) -> impl Iterator<Item = ObjectId> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_prefix(b"^").unwrap_or(line);
        ObjectId::parse(line.get(..40)?)
    })
}

/// The newest commits of a reflog. Each line has the old and the new one.
fn logged(tree: &TreeReader, path: &Path) -> Vec<ObjectId> {
    let text = read(tree, path).unwrap_or_default();
    let lines = text.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let pair =
        |line: &[u8]| [line.get(..40), line.get(41..81)].map(|id| id.and_then(ObjectId::parse));
    lines.take(MAX_LOGGED).flat_map(pair).flatten().collect()
}

/// Files below a directory.
fn files(tree: &TreeReader, directory: &Path) -> Vec<PathBuf> {
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

fn read(tree: &TreeReader, path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let taken = tree.directory(path.parent()?).ok()?.take(path.file_name()?, MAX_BYTES, &mut bytes);
    matches!(taken, Ok(WholeRead::Whole(_))).then_some(bytes)
}
