//! Indexes and configurations of repositories before a command. Undo does not restore them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_fs::{BulkReader, Workspace};
use toolcrib_text::visible_name;

use super::git_directory::{GitPlace, quoted};
use super::repository_state::RepositoryNotes;
use crate::git::commit_tree::CommitTree;
use crate::git::objects::ObjectStore;
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
}

impl GitFiles {
    /// Called before a command changes an entry of a git directory.
    pub(super) fn before_change(&mut self, tree: &BulkReader, directory: &Path, name: &OsStr) {
        if (name == INDEX || name == CONFIGURATION) && self.before.len() < MAX_FILES {
            let path = directory.join(name);
            let content = self.before.entry(tree.path().join(&path));
            content.or_insert_with(|| read(tree, &path));
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
        let GitPlace { tree, directory } = &self.place;
        let Some(after) = self.after.as_deref().and_then(index::entries) else { return paths };
        let Some(head) = refs::head(tree, directory).filter(|_| paths.len() <= MAX_LOOKED_UP)
        else {
            return paths;
        };
        let objects = directory::common(tree, directory).join("objects");
        let store = ObjectStore::new(vec![(tree.clone(), objects)]);
        let mut commit = match head.commit {
            Some(commit) => match CommitTree::of(store, commit) {
                Some(commit) => Some(commit),
                None => return paths,
            },
            None => None,
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
