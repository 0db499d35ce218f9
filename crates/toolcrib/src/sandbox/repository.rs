//! Where a repository of git has more of its kind: submodules, worktrees, and the files that point to them.
//!
//! A worktree is made and removed by commands, so nothing of it is held; but what in it would make git take
//! its configuration from elsewhere is found by what it says.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use toolcrib_fs::{EntryKind, Taken, Tree};

use super::harmless;

/// More than a file has that only points somewhere, or a configuration that nobody wrote by hand.
const MAX_BYTES: u64 = 64 << 10;

/// Submodules and worktrees of one repository that are looked at.
const MAX_OF_ONE: usize = 100;

/// How deep the name of a submodule is.
const MAX_DEPTH: usize = 4;

const SUBMODULES: &str = "modules";
const WORKTREES: &str = "worktrees";

/// What makes git run something in a submodule.
const OF_A_SUBMODULE: [&str; 4] = ["hooks", "config", "info", "commondir"];

/// What makes git run something in the submodules of a repository.
pub(super) fn of_submodules(tree: &Tree, repository: &Path) -> Vec<PathBuf> {
    let (mut parts, mut open) = (Vec::new(), vec![(repository.join(SUBMODULES), 0)]);
    while let Some((directory, depth)) = open.pop() {
        for name in directories_in(tree, &directory) {
            let inside = directory.join(name);
            if tree.stamp(&inside.join("HEAD")).is_some() {
                parts.extend(OF_A_SUBMODULE.map(|part| inside.join(part)));
                open.push((inside.join(SUBMODULES), depth + 1));
            } else if depth < MAX_DEPTH {
                open.push((inside, depth + 1));
            }
        }
        if parts.len() + open.len() > MAX_OF_ONE * OF_A_SUBMODULE.len() {
            break;
        }
    }
    parts
}

/// What in the worktrees of a repository makes git take its configuration from elsewhere.
pub(super) fn of_worktrees(tree: &Tree, repository: &Path) -> Vec<PathBuf> {
    let worktrees = repository.join(WORKTREES);
    let names = directories_in(tree, &worktrees).into_iter();
    let in_one = |name: OsString| {
        let [common, config] =
            ["commondir", "config.worktree"].map(|part| worktrees.join(&name).join(part));
        let usual = text(tree, &common).is_none_or(|text| text.trim_end() == "../..");
        let harmless = text(tree, &config).is_none_or(|text| harmless::for_git(&text));
        [(common, usual), (config, harmless)]
    };
    names.flat_map(in_one).filter(|(_, harmless)| !harmless).map(|(part, _)| part).collect()
}

/// Whether a `.git` that is a file says that the repository is a worktree or a submodule of another one in
/// the same root, which is looked at itself.
pub(super) fn is_pointer(tree: &Tree, file: &Path) -> bool {
    let Some(text) = text(tree, file) else { return false };
    let Some(target) = text.strip_prefix("gitdir: ") else { return false };
    let Some(parent) = file.parent() else { return false };
    let target = plain(&tree.path().join(parent).join(target.trim_end_matches('\n')));
    let Ok(inside) = target.strip_prefix(tree.path()) else { return false };
    let names: Vec<&str> = inside.iter().filter_map(|name| name.to_str()).collect();
    names.windows(3).any(|names| {
        names[0] == ".git"
            && (names[1] == WORKTREES || names[1] == SUBMODULES)
            && !names[2].is_empty()
    })
}

/// A file as text, if it is a small one.
pub(super) fn text(tree: &Tree, path: &Path) -> Option<String> {
    let (parent, name) = (path.parent()?, path.file_name()?);
    let mut bytes = Vec::new();
    let taken = tree.directory(parent).ok()?.take(name, MAX_BYTES, &mut bytes).ok()?;
    matches!(taken, Taken::Whole(_)).then(|| String::from_utf8(bytes).ok()).flatten()
}

fn directories_in(tree: &Tree, directory: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    if let Ok(opened) = tree.directory(directory) {
        // What cannot be listed has nothing that git finds.
        let _ = opened.each(|name, kind| {
            if kind == EntryKind::Directory {
                names.push(name.to_owned());
            }
            names.len() < MAX_OF_ONE
        });
    }
    names
}

/// A path without `.` and `..`, by its names alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
