//! Files and directories that a command moved. One phrase each is shorter than lists of deleted and created files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{Action, ChangedFile};

use super::Changed;
use crate::phrases::counted;

/// A moved file or directory.
#[derive(Debug)]
pub(super) struct Move {
    from: (PathBuf, String),
    to: (PathBuf, String),
    is_directory: bool,
    /// The deleted and the created files.
    pub(super) files: Vec<Changed>,
}

impl Move {
    /// Separates moved files from the others. A rename counts if all files are at their new paths and have their
    /// previous content and mode.
    pub(super) fn all(
        files: Vec<Changed>,
        renames: &[(PathBuf, PathBuf)],
        show: impl Fn(&Path) -> String,
    ) -> (Vec<Move>, Vec<Changed>) {
        let mut rest = files;
        let mut moves = Vec::new();
        for (from, to) in renames {
            let Some(moved) = moved_paths(&rest, from, to) else { continue };
            let (files, others) = rest.into_iter().partition(|one| moved.contains(&one.file.path));
            rest = others;
            let is_directory = !moved.contains(from);
            let with_shown = |path: &PathBuf| (path.clone(), show(path));
            moves.push(Move { from: with_shown(from), to: with_shown(to), is_directory, files });
        }
        (moves, rest)
    }

    /// `src/click to src/clack (18 files)`.
    pub(super) fn phrase(&self) -> String {
        let Move { from: (_, from), to: (_, to), is_directory, files } = self;
        let files = counted(files.len() as u64 / 2, "file");
        if *is_directory { format!("{from} to {to} ({files})") } else { format!("{from} to {to}") }
    }
}

/// Created and removed directories, without those that moved with their parents.
pub(super) fn without_moved(
    moves: &[Move],
    made: Vec<PathBuf>,
    removed: Vec<PathBuf>,
) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let old_path = |path: &Path| {
        moves.iter().find_map(|one| Some(one.from.0.join(path.strip_prefix(&one.to.0).ok()?)))
    };
    let gone: HashSet<&PathBuf> = removed.iter().collect();
    let was = |path: &Path| old_path(path).filter(|old| gone.contains(old));
    let moved: HashSet<PathBuf> = made.iter().filter_map(|path| was(path)).collect();
    let made: Vec<PathBuf> = made.into_iter().filter(|path| was(path).is_none()).collect();
    let removed = removed.into_iter().filter(move |path| !moved.contains(path));
    let made = made.into_iter().map(|path| ("created", path));
    made.chain(removed.map(|path| ("removed", path)))
}

/// The old and the new paths of the files that a rename moved. `None` if it did not move all of them unchanged.
fn moved_paths(files: &[Changed], from: &Path, to: &Path) -> Option<HashSet<PathBuf>> {
    let below = |action: Action, directory: &Path| {
        let directory = directory.to_owned();
        let files = files.iter().map(|one| &one.file);
        files.filter(move |file| file.action == action && file.path.starts_with(&directory))
    };
    let created: HashMap<&Path, &ChangedFile> =
        below(Action::Created, to).map(|file| (file.path.as_path(), file)).collect();
    let mut moved = HashSet::new();
    for file in below(Action::Deleted, from) {
        let rest = file.path.strip_prefix(from).ok()?;
        // Joining an empty path would add a slash.
        let path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
        let new = created.get(path.as_path())?;
        let (before, after) = (file.versions.0?, new.versions.1?);
        (before == after).then_some(())?;
        moved.extend([file.path.clone(), path]);
    }
    (!moved.is_empty() && moved.len() == 2 * created.len()).then_some(moved)
}
