//! Indexes and configurations of repositories before a command. Undo does not restore them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{BulkReader, Workspace};
use toolcrib_text::visible_name;

use super::git_directory::{GitPlace, quoted};
use super::repository_state::RepositoryNotes;
use crate::git::commit_tree::CommitTree;
use crate::git::index::Staged;
use crate::git::objects::{ObjectId, ObjectStore};
use crate::git::{directory, index, refs};
use crate::phrases::{counted, it_or_them};

const INDEX: &str = "index";
const CONFIGURATION: &str = "config";

/// Limit of files.
const MAX_FILES: usize = 16;

/// Limit of paths in the command that unstages them.
const MAX_PATHS: usize = 3;

/// Limit of paths that are looked up in a commit.
const MAX_LOOKED_UP: usize = 1_000;

/// Contents before the command, by resolved path.
#[derive(Debug, Default)]
pub(super) struct GitFiles {
    before: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// The commits of the work trees at the time, by the path of their index.
    heads: BTreeMap<PathBuf, Option<ObjectId>>,
}

impl GitFiles {
    /// Called before a command changes an entry of a git directory.
    pub(super) fn before_change(&mut self, tree: &BulkReader, directory: &Path, name: &OsStr) {
        if (name == INDEX || name == CONFIGURATION) && self.before.len() < MAX_FILES {
            let path = directory.join(name);
            let real = tree.path().join(&path);
            if name == INDEX {
                self.heads.entry(real.clone()).or_insert_with(|| commit_of(tree, directory));
            }
            self.before.entry(real).or_insert_with(|| read(tree, &path));
        }
    }

    /// Adds notes about changes since the last call of this method. The indexes of the git directories `restored` are
    /// restored by the commands of other notes.
    pub(super) fn take_notes(
        &mut self,
        workspace: &Workspace,
        here: Option<&Path>,
        restored: &[PathBuf],
        notes: &mut RepositoryNotes,
    ) {
        for (path, before) in &mut self.before {
            let Some(compared) = Compared::at(workspace, path, before.as_deref()) else { continue };
            if path.ends_with(INDEX) {
                let is_restored = restored.contains(&compared.place.path());
                let note = if is_restored { None } else { compared.index_note() };
                let note = note.map(|note| compared.place.adapt(note, here));
                notes.beside_files.extend(note);
                let head = commit_of(&compared.place.tree, &compared.place.directory);
                let before = self.heads.insert(path.clone(), head);
                // Another commit may have the versions.
                let note = compared.dropped_note().filter(|_| before == Some(head) && !is_restored);
                notes.lost.extend(note.map(|note| compared.place.adapt(note, here)));
            } else if compared.is_changed(path) {
                let shown = visible_name(path.as_os_str().as_encoded_bytes());
                notes.lost.push(format!("{shown} was changed; an undo does not restore it"));
            }
            let Compared { after, .. } = compared;
            *before = after;
        }
    }

    /// The changed parts, in words.
    pub(super) fn changed_parts(&self, workspace: &Workspace) -> Vec<String> {
        let changed = self.before.iter().filter(|(path, before)| {
            let compared = Compared::at(workspace, path, before.as_deref());
            compared.is_some_and(|compared| compared.is_changed(path))
        });
        let word = |path: &PathBuf| if path.ends_with(INDEX) { INDEX } else { "configuration" };
        changed.map(|(path, _)| word(path).to_owned()).collect()
    }
}

/// The commit of a work tree.
fn commit_of(tree: &BulkReader, directory: &Path) -> Option<ObjectId> {
    refs::head(tree, directory)?.commit
}

/// Reads an index or a configuration. `None` if it does not exist or is too large.
fn read(tree: &BulkReader, path: &Path) -> Option<Vec<u8>> {
    directory::read_at_most(tree, path, index::MAX_BYTES)
}

/// A file before and after a command.
struct Compared<'a> {
    before: Option<&'a [u8]>,
    after: Option<Vec<u8>>,
    place: GitPlace,
}

impl<'a> Compared<'a> {
    /// `None` if the file is not in a repository.
    fn at(workspace: &Workspace, path: &Path, before: Option<&'a [u8]>) -> Option<Compared<'a>> {
        let (tree, relative) = workspace.tree_of(path)?;
        let directory = relative.parent()?.to_owned();
        let after = read(&tree, &relative);
        directory::is_complete(&tree, &directory, None).then(|| Compared {
            before,
            after,
            place: GitPlace { tree, directory },
        })
    }

    fn is_changed(&self, path: &Path) -> bool {
        if path.ends_with(INDEX) {
            return !self.changed_entries().is_empty();
        }
        // A missing file belongs to a repository that the command creates.
        self.before.is_some() && self.before != self.after.as_deref()
    }

    /// The paths whose staged versions differ. Git also rewrites an index to refresh file times.
    fn changed_entries(&self) -> Vec<Vec<u8>> {
        let (Some(before), Some(after)) = (self.before, self.after.as_deref()) else {
            return Vec::new();
        };
        if before == after {
            return Vec::new();
        }
        let entries = (index::entries(before), index::entries(after));
        let (Some(before), Some(after)) = entries else { return Vec::new() };
        let changed = before.iter().filter(|(path, staged)| after.get(*path) != Some(staged));
        let added = after.iter().filter(|(path, _)| !before.contains_key(*path));
        changed.chain(added).map(|(path, _)| path.clone()).collect()
    }

    /// The changed paths whose staged version differs from the commit: only those can be unstaged.
    fn staged_entries(&self) -> Vec<Vec<u8>> {
        let mut paths = self.changed_entries();
        let Some(after) = self.after.as_deref().and_then(index::entries) else { return paths };
        let Some(mut commit) = self.commit_tree().filter(|_| paths.len() <= MAX_LOOKED_UP) else {
            return paths;
        };
        paths.retain(|path| {
            let committed = commit.as_mut().and_then(|commit| commit.file(path));
            let staged = after.get(path).map(Vec::as_slice);
            match (staged, committed) {
                (Some([(mode, 0, object)]), Some(committed)) => (*mode, *object) != committed,
                (None, None) => false,
                _ => true,
            }
        });
        paths
    }

    /// The files of the current commit, if there is one. `None` if it cannot be read.
    fn commit_tree(&self) -> Option<Option<CommitTree>> {
        let GitPlace { tree, directory } = &self.place;
        let Some(commit) = refs::head(tree, directory)?.commit else { return Some(None) };
        let objects = directory::common(tree, directory).join("objects");
        let store = ObjectStore::new(vec![(tree.clone(), objects)]);
        CommitTree::of(store, commit).map(Some)
    }

    /// Staged versions that were replaced by those of the commit, and that neither the commit nor the file has.
    fn dropped_versions(&self) -> Option<Vec<(Vec<u8>, u32, ObjectId)>> {
        let (before, after) =
            (index::entries(self.before?)?, index::entries(self.after.as_deref()?)?);
        let paths = self.changed_entries();
        if paths.is_empty() || paths.len() > MAX_LOOKED_UP {
            return None;
        }
        let mut commit = self.commit_tree()?;
        let staged = |versions: Option<&Vec<Staged>>| match versions.map(Vec::as_slice) {
            Some(&[(mode, 0, object)]) => Some((mode, object)),
            _ => None,
        };
        let dropped = paths.into_iter().filter_map(|path| {
            let (mode, object) = staged(before.get(&path))?;
            let committed = commit.as_mut().and_then(|commit| commit.file(&path));
            let is_dropped =
                committed != Some((mode, object)) && staged(after.get(&path)) == committed;
            (is_dropped && !self.place.has_in_work_tree(&path, object))
                .then_some((path, mode, object))
        });
        Some(dropped.collect())
    }

    fn dropped_note(&self) -> Option<String> {
        let dropped = self.dropped_versions().filter(|dropped| !dropped.is_empty())?;
        let words = dropped.iter().take(MAX_PATHS).map(|(path, mode, object)| {
            let path = quoted(&visible_name(path)).into_owned();
            format!("--cacheinfo {mode:o},{object},{path}")
        });
        let command = format!("git update-index --add {}", words.collect::<Vec<_>>().join(" "));
        let more = match dropped.len().saturating_sub(MAX_PATHS) {
            0 => "",
            _ => ", and so on; `git fsck --lost-found` finds all of them",
        };
        let files = counted(dropped.len() as u64, "file");
        let them = it_or_them(dropped.len() as u64);
        Some(format!(
            "the staged version of {files} was dropped: `{command}` stages {them} again{more}"
        ))
    }

    fn index_note(&self) -> Option<String> {
        let paths = self.staged_entries();
        let command = match paths.len() {
            0 => return None,
            1..=MAX_PATHS => {
                // Paths are relative to the work tree, and the command may run below it.
                let words = paths
                    .iter()
                    .map(|path| quoted(&format!(":/{}", visible_name(path))).into_owned());
                format!("git reset -q -- {}", words.collect::<Vec<_>>().join(" "))
            }
            _ => "git reset -q".to_owned(),
        };
        let files = counted(paths.len() as u64, "file");
        let them = it_or_them(paths.len() as u64);
        Some(format!(
            "the index was changed ({files}); an undo does not restore it: `{command}` unstages {them}"
        ))
    }
}
