//! Paths in the configuration of a repository from which git runs programs or reads more configuration.
//!
//! The repository may be outside the roots: a root can be a subdirectory of it, or a worktree. Its paths can
//! still lead into a root.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use toolcrib_fs::{BulkReader, Root, RootMode, Workspace, real_path};
use toolcrib_policy::git_config::{self, Variable};

use super::directory;

/// More than any configuration includes.
const MAX_CONFIGURATIONS: usize = 64;

/// The absolute paths that the repository of a work tree names. `None` if they cannot be determined.
pub(crate) fn git_config_paths(work_tree: &Path, home: Option<&Path>) -> Option<Vec<PathBuf>> {
    let Some(directory) = git_directory_of(work_tree)? else { return Some(Vec::new()) };
    let mut pending: Vec<PathBuf> = directory::configurations(&directory);
    let (mut named, mut seen) = (Vec::new(), HashSet::new());
    while let Some(configuration) = pending.pop() {
        if !seen.insert(configuration.clone()) {
            continue;
        }
        if seen.len() > MAX_CONFIGURATIONS {
            return None;
        }
        let Some(text) = read(&configuration)? else { continue };
        // Git does not use a configuration that it cannot parse.
        for variable in git_config::parse(&text).unwrap_or_default() {
            let (from, is_included) = match (variable.section.as_str(), variable.name.as_str()) {
                ("core", "hookspath") => (work_tree, false),
                ("include" | "includeif", "path") => (configuration.parent()?, true),
                _ => continue,
            };
            let Some(path) = path_of(&variable, from, home) else { continue };
            // A command could replace a symlink in the path, so both spellings count.
            let real = real_path(&path);
            if is_included {
                pending.push(real.clone());
            }
            named.extend([normalized(&path), real]);
        }
    }
    Some(named)
}

/// The git directory of a work tree. The outer `None` means unknown; the inner one means no repository.
fn git_directory_of(work_tree: &Path) -> Option<Option<PathBuf>> {
    let tree = tree(work_tree)?;
    if !directory::may_be_work_tree(&tree, Path::new("")) {
        return Some(None);
    }
    let path = real_path(&work_tree.join(directory::DOT_GIT));
    if self::tree(&path).is_some() {
        return Some(Some(path));
    }
    let Some(text) = read(&path)? else { return Some(None) };
    // Git does not use a file with other content.
    let pointed = |text: &[u8]| -> Option<PathBuf> {
        let target = std::str::from_utf8(text).ok()?.strip_prefix("gitdir:")?.trim();
        Some(work_tree.join(target))
    };
    let Some(directory) = pointed(&text) else { return Some(None) };
    let common = read(&directory.join(directory::COMMON))?;
    let common = common.and_then(|text| String::from_utf8(text).ok());
    Some(Some(match common {
        Some(common) => directory.join(common.trim()),
        None => directory,
    }))
}

/// The path in a variable, relative to `from`.
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

/// Removes `.` and `..` without resolving symlinks.
fn normalized(path: &Path) -> PathBuf {
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

/// Reads a small file. The outer `None` means unreadable; the inner one means missing.
fn read(path: &Path) -> Option<Option<Vec<u8>>> {
    let real = real_path(path);
    let (parent, name) = (real.parent()?, Path::new(real.file_name()?));
    let Some(tree) = tree(parent) else { return Some(None) };
    if !tree.may_have(name) {
        return Some(None);
    }
    directory::read(&tree, name).map(Some)
}

/// Opens a directory for reading the files in it.
fn tree(directory: &Path) -> Option<BulkReader> {
    let root = Root::open(directory, RootMode::ReadOnly).ok()?;
    Workspace::new(vec![root]).ok()?.trees().next()
}
