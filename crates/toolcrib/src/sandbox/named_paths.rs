//! Paths that the configuration of a repository has git run, or read more configuration from.
//!
//! The repository may lie outside the roots: a root can be a directory of it, or a worktree. Its paths can still
//! lead into a root.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use toolcrib_fs::{Root, RootMode, TreeReader, Workspace, real_path};
use toolcrib_policy::git_config::{self, Variable};

use super::git_directory;

/// More configurations than include each other anywhere.
const MAX_CONFIGURATIONS: usize = 64;

/// The paths that the repository of a work tree names, all of them absolute. Nothing, if that cannot be known.
pub(super) fn named_paths(work_tree: &Path, home: Option<&Path>) -> Option<Vec<PathBuf>> {
    let Some(directory) = directory_of(work_tree)? else { return Some(Vec::new()) };
    let mut pending: Vec<PathBuf> = git_directory::configurations(&directory);
    let (mut named, mut seen) = (Vec::new(), HashSet::new());
    while let Some(configuration) = pending.pop() {
        if !seen.insert(configuration.clone()) {
            continue;
        }
        if seen.len() > MAX_CONFIGURATIONS {
            return None;
        }
        let Some(text) = read(&configuration)? else { continue };
        // Git does not use one that it cannot parse.
        for variable in git_config::parse(&text).unwrap_or_default() {
            let (from, is_included) = match (variable.section.as_str(), variable.name.as_str()) {
                ("core", "hookspath") => (work_tree, false),
                ("include" | "includeif", "path") => (configuration.parent()?, true),
                _ => continue,
            };
            let Some(path) = path_of(&variable, from, home) else { continue };
            // A command that replaced a symlink on the way would change what git finds.
            let real = real_path(&path);
            if is_included {
                pending.push(real.clone());
            }
            named.extend([plain(&path), real]);
        }
    }
    Some(named)
}

/// The directory of the repository that a work tree belongs to. The outer answer is nothing, if it cannot be
/// known; the inner one, if there is no repository.
fn directory_of(work_tree: &Path) -> Option<Option<PathBuf>> {
    let tree = tree(work_tree)?;
    if !git_directory::may_be_work_tree(&tree, Path::new("")) {
        return Some(None);
    }
    let path = real_path(&work_tree.join(git_directory::USUAL_NAME));
    if self::tree(&path).is_some() {
        return Some(Some(path));
    }
    let Some(text) = read(&path)? else { return Some(None) };
    // Git does not use a file that says anything else.
    let pointed = |text: &[u8]| -> Option<PathBuf> {
        let target = std::str::from_utf8(text).ok()?.strip_prefix("gitdir:")?.trim();
        Some(work_tree.join(target))
    };
    let Some(directory) = pointed(&text) else { return Some(None) };
    let common = read(&directory.join(git_directory::COMMON))?;
    let common = common.and_then(|text| String::from_utf8(text).ok());
    Some(Some(match common {
        Some(common) => directory.join(common.trim()),
        None => directory,
    }))
}

/// The path that a variable has, from a directory.
fn path_of(variable: &Variable, from: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let value = String::from_utf8(variable.value.clone()?).ok()?;
    if value.is_empty() {
        return None;
    }
    match value.strip_prefix("~/") {
        Some(beneath) => Some(home?.join(beneath)),
        None => Some(from.join(value)),
    }
}

/// A path without dots.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    plain
}

/// A small file. The outer answer is nothing, if it cannot be read; the inner one, if it is not there.
fn read(path: &Path) -> Option<Option<Vec<u8>>> {
    let real = real_path(path);
    let (parent, name) = (real.parent()?, Path::new(real.file_name()?));
    let Some(tree) = tree(parent) else { return Some(None) };
    if !tree.may_have(name) {
        return Some(None);
    }
    git_directory::read(&tree, name).map(Some)
}

/// A directory, to look at files in it.
fn tree(directory: &Path) -> Option<TreeReader> {
    let root = Root::open(directory, RootMode::ReadOnly).ok()?;
    Workspace::new(vec![root]).ok()?.trees().next()
}
