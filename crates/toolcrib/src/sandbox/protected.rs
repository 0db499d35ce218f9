//! Which names in the roots a command may not write: those that make programs run code, at the top of each
//! root and in the directories of tools there.
//!
//! File tools keep out of `.git` altogether. A command must be able to commit, so there it is only what
//! makes git run something that is protected.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Directory, EntryKind, Root, RootMode};

use crate::runtime::Runtime;

/// More names than any project has at its top; each protected one is a mount of its own.
const MAX_PROTECTED: usize = 256;

/// Directories of version control, which a command writes, and what in them it does not.
const REPOSITORIES: [(&str, &[&str]); 3] = [
    (".git", &["hooks", "config", "config.worktree", "info"]),
    (".hg", &["hgrc"]),
    (".jj", &["repo/config.toml"]),
];

/// Where a repository has those of its submodules.
const SUBMODULES: &str = "modules";

/// Every protected name that is there now.
pub(crate) fn names(runtime: &Runtime) -> Vec<PathBuf> {
    let writable = runtime.workspace().roots().filter(|root| root.mode() == RootMode::ReadWrite);
    let mut names: Vec<PathBuf> = writable.flat_map(|root| in_root(runtime, root)).collect();
    names.truncate(MAX_PROTECTED);
    names
}

fn in_root(runtime: &Runtime, root: &Root) -> Vec<PathBuf> {
    let top = runtime.workspace().resolve(&runtime.workspace().top(), root.path());
    let Some(top) = top.ok().and_then(|top| Directory::open(&top).ok()) else { return Vec::new() };
    let protects = |path: &Path| runtime.protection().find(path).is_some();
    let mut found = Vec::new();
    for (name, kind) in entries(&top) {
        let path = Path::new(&name);
        let repository =
            REPOSITORIES.iter().find(|(repository, _)| *repository == path.as_os_str());
        match repository.filter(|_| kind == EntryKind::Directory) {
            Some((_, parts)) => {
                let parts = parts.iter().map(|part| path.join(part));
                let parts = parts.chain(of_submodules(&top, path)).filter(|part| protects(part));
                found.extend(parts.filter(|part| is_there(runtime, root, part)));
            }
            None if protects(path) => found.push(path.to_owned()),
            // What is protected within a directory is within one of a tool's.
            None if kind == EntryKind::Directory && name.as_encoded_bytes().starts_with(b".") => {
                let inside = top.child(&name).map(|inside| entries(&inside)).unwrap_or_default();
                let inside = inside.into_iter().map(|(inner, _)| path.join(inner));
                found.extend(inside.filter(|path| protects(path)));
            }
            None => {}
        }
    }
    found.into_iter().map(|path| root.path().join(path)).collect()
}

/// What makes git run something in a submodule.
fn of_submodules(top: &Directory, repository: &Path) -> Vec<PathBuf> {
    let modules = top.child(repository.as_os_str());
    let modules = modules.and_then(|inside| inside.child(OsStr::new(SUBMODULES)));
    let modules = modules.map(|modules| entries(&modules)).unwrap_or_default();
    let parts = ["hooks", "config", "info"];
    let of_one = |(name, _)| parts.map(|part| repository.join(SUBMODULES).join(&name).join(part));
    modules.into_iter().flat_map(of_one).collect()
}

fn is_there(runtime: &Runtime, root: &Root, name: &Path) -> bool {
    let path = root.path().join(name);
    let place = runtime.workspace().resolve(&runtime.workspace().top(), &path);
    place.is_ok_and(|place| place.kind().is_some())
}

fn entries(directory: &Directory) -> Vec<(std::ffi::OsString, EntryKind)> {
    let mut entries = Vec::new();
    // What cannot be listed has no names that a command could write.
    let _ = directory.each(|name, kind| {
        entries.push((name.to_owned(), kind));
        entries.len() < MAX_ENTRIES
    });
    entries
}

/// More than any project has in one of these directories.
const MAX_ENTRIES: usize = 10_000;
