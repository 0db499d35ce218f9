//! Which names in the roots a command may not write, and which it may not even see: those that make
//! programs run code, and those that rules deny.
//!
//! File tools keep out of `.git` altogether. A command must be able to commit, so there it is only what
//! makes git run something that is protected.

use std::path::{Path, PathBuf};

use toolcrib_fs::{EntryKind, Root, RootMode, Tree};
use toolcrib_policy::Effect;

use super::repository;
use super::survey::{Found, Survey};
use crate::runtime::Runtime;

/// More names than any project has; each protected or hidden one is a mount of its own.
const MAX_NAMES: usize = 512;

/// So many directories are looked into for names that are protected without anybody having said so: twice
/// for each command, so that more would be felt.
const DIRECTORIES: usize = 400;

/// The same where rules deny files, which whoever wrote them wants to be held.
const DIRECTORIES_WITH_RULES: usize = 50_000;

/// Directories of version control, which a command writes, and what in them it does not.
const REPOSITORIES: [(&str, &[&str]); 3] = [
    (".git", &["hooks", "config", "config.worktree", "info", "commondir"]),
    (".hg", &["hgrc"]),
    (".jj", &["repo/config.toml"]),
];

/// The names that a command is kept from, all of them real paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptFrom {
    /// What makes programs run code.
    pub(crate) protected: Vec<PathBuf>,
    /// What rules deny to edit.
    pub(crate) uneditable: Vec<PathBuf>,
    /// What rules deny to read.
    pub(crate) unreadable: Vec<PathBuf>,
    /// What of the rules is not held, each as a sentence.
    pub(crate) not_held: Vec<String>,
}

/// Everything that is there now.
pub(crate) fn kept_from(runtime: &Runtime, survey: &Survey) -> KeptFrom {
    let mut kept = KeptFrom::default();
    let denies = |effect| runtime.policy().denies_files(effect);
    let (reading, editing) = (denies(Effect::Read), denies(Effect::Write));
    let most = if reading || editing { DIRECTORIES_WITH_RULES } else { DIRECTORIES };
    let workspace = runtime.workspace();
    for (root, tree) in workspace.roots().zip(workspace.trees()) {
        let look = Look { runtime, tree: &tree, root, reading, editing };
        let (found, complete) = survey.find(&tree, most, &|path, kind| look.classify(path, kind));
        for (path, what) in found {
            let list = match what {
                Found::Protected => &mut kept.protected,
                Found::Uneditable => &mut kept.uneditable,
                Found::Unreadable => &mut kept.unreadable,
                Found::Repository => {
                    kept.protected.extend(look.in_repository(&path));
                    continue;
                }
            };
            list.push(root.path().join(path));
        }
        if !complete && (reading || editing) {
            let root = root.path().display();
            kept.not_held.push(format!(
                "{root} has more directories than are looked into ({most}): rules that deny files are held for commands at its top only"
            ));
        }
    }
    kept.outside(runtime);
    for list in [&mut kept.protected, &mut kept.uneditable, &mut kept.unreadable] {
        if list.len() > MAX_NAMES {
            let left_out = list.len() - MAX_NAMES;
            kept.not_held.push(format!(
                "{left_out} files that commands should be kept from are more than can be held ({MAX_NAMES})"
            ));
            list.truncate(MAX_NAMES);
        }
    }
    kept
}

impl KeptFrom {
    /// What rules deny outside the workspace.
    fn outside(&mut self, runtime: &Runtime) {
        let (paths, patterns) = runtime.policy().unreadable_outside();
        self.unreadable.extend(paths);
        if !patterns.is_empty() {
            self.not_held.push(format!(
                "rules that deny reading outside the workspace are held for commands only if they name a path without `*`: {}",
                patterns.join(", ")
            ));
        }
    }
}

struct Look<'a> {
    runtime: &'a Runtime,
    tree: &'a Tree,
    root: &'a Root,
    reading: bool,
    editing: bool,
}

impl Look<'_> {
    /// What a name is, given from the root.
    fn classify(&self, path: &Path, kind: EntryKind) -> Option<Found> {
        let denies =
            |effect| self.runtime.policy().denies_file(effect, &self.root.path().join(path));
        if self.reading && denies(Effect::Read) {
            return Some(Found::Unreadable);
        }
        if self.root.mode() != RootMode::ReadWrite {
            return None;
        }
        if self.editing && denies(Effect::Write) {
            return Some(Found::Uneditable);
        }
        if kind != EntryKind::Link && parts_of(path).is_some() {
            return Some(Found::Repository);
        }
        self.protects(path).then_some(Found::Protected)
    }

    /// What of a repository is there and makes programs run code.
    fn in_repository(&self, path: &Path) -> Vec<PathBuf> {
        let mut parts = Vec::new();
        if self.tree.directory(path).is_ok() {
            parts.extend(parts_of(path).unwrap_or_default().iter().map(|part| path.join(part)));
            parts.extend(repository::of_submodules(self.tree, path));
            parts.extend(repository::of_worktrees(self.tree, path));
        } else if !repository::is_pointer(self.tree, path) {
            parts.push(path.to_owned());
        }
        parts.retain(|part| self.protects(part) && self.tree.stamp(part).is_some());
        parts.into_iter().map(|part| self.root.path().join(part)).collect()
    }

    fn protects(&self, path: &Path) -> bool {
        self.runtime.protection().find(path).is_some()
    }
}

/// What of a directory is protected, if it is one of version control.
fn parts_of(path: &Path) -> Option<&'static [&'static str]> {
    let name = path.file_name()?;
    let found = REPOSITORIES.iter().find(|(repository, _)| *repository == name);
    found.map(|(_, parts)| *parts)
}
