//! Reverts changes in the current files.
//!
//! A change is reverted by an inverse patch. A file that is still as the change left it gets its previous
//! content. A file that was changed since is merged line by line, so that later edits are preserved. If both
//! touch the same lines, the undo fails and writes nothing. A symlink gets its previous target; it is neither
//! followed nor merged. Removed directories are restored with their modes, and created ones are removed if they
//! are empty.
//!
//! A protected file gets exactly its content from before the change, or stays as it is: it is not merged, and an undo
//! of it is not redone. Content that an earlier change wrote is restored only if it is the user's own as well, that is,
//! if git in the sandbox may write it. The other files are reverted without it.

mod current_file;
mod file_order;
mod later_changes;
mod nonempty_directories;
mod request;
mod selection;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, FileChange, FileKind, KeptDirectory, KeptPath, NewMode};

pub(crate) use self::later_changes::LaterChanges;
pub(crate) use self::request::{ChangesBy, UndoRequest, real_paths};
pub use self::request::{UndoPart, UndoSelection};
pub(crate) use self::selection::{Selection, changes_before};

use self::current_file::{CurrentFile, DENIED};
use self::file_order::{follows, in_order_by_file};
use self::nonempty_directories::nonempty_directories;
use crate::cx::{Cx, FileEdit};
use crate::error::{Error, ErrorKind};
use crate::history::{ChangeLog, HistoryEntry};
use crate::path_access::require_restorable;

/// The edits of an undo.
pub(crate) struct Plan {
    pub(crate) edits: Vec<FileEdit>,
    /// Directories to create, with their modes, parents first.
    pub(crate) needed: Vec<(PathBuf, u32)>,
    /// Directories to remove if they are empty, parents first.
    pub(crate) unneeded: Vec<PathBuf>,
    /// Those of them that stay, because they have other entries.
    pub(crate) nonempty: HashSet<PathBuf>,
    /// Merged files, each with the later changes that were preserved.
    pub(crate) merged: Vec<String>,
    /// Protected files whose previous content is restored.
    pub(crate) restored: Vec<PathBuf>,
    /// Files that may not be changed and stay as they are, with the reason.
    pub(crate) kept: Vec<(String, &'static str)>,
}

const WRITTEN_BY_CHANGE: &str =
    "a tool or command has written its old content, and no commit from before the session has it";

impl Plan {
    /// Plans the undo of the selected changes. `log` has all known changes, `others` are those of other sessions.
    pub(crate) fn of(
        cx: &Cx<'_>,
        chosen: &Selection,
        log: &ChangeLog,
        others: &[u64],
    ) -> Result<Plan, Error> {
        let mut files: BTreeMap<PathBuf, CurrentFile> = BTreeMap::new();
        let mut merged: BTreeMap<PathBuf, u64> = BTreeMap::new();
        // The mode that a directory is to have. `None` if it is to be removed.
        let mut directories: BTreeMap<PathBuf, Option<u32>> = BTreeMap::new();
        let later = LaterChanges { log, undone: chosen, others };
        for (path, changes) in changes_by_file(chosen, log) {
            let mut file_state = CurrentFile::of(cx, &path)?;
            for (change, file) in changes {
                let is_merged = match chosen.hunk {
                    Some(index) => file_state.revert_hunk(cx, file, (change, index), &later)?,
                    None => file_state.revert(cx, file, change, &later)?,
                };
                if is_merged {
                    merged.insert(path.clone(), change.id);
                }
            }
            files.insert(path, file_state);
        }
        for change in &chosen.changes {
            if chosen.hunk.is_some() {
                continue;
            }
            let made = change.entry.directories.iter().map(KeptPath::path);
            let made = made.map(|path| (path, None));
            let removed = change.entry.removed.iter();
            let removed = removed.map(|kept: &KeptDirectory| (kept.path(), Some(kept.mode)));
            let all = made.chain(removed);
            let is_selected = |(path, _): &(PathBuf, Option<u32>)| {
                chosen.includes_directory(path) && !change.undone_parts.includes(path)
            };
            directories.extend(all.filter(is_selected));
        }
        let mut plan = Plan {
            edits: Vec::new(),
            needed: Vec::new(),
            unneeded: Vec::new(),
            nonempty: HashSet::new(),
            merged: Vec::new(),
            restored: Vec::new(),
            kept: Vec::new(),
        };
        for (path, id) in merged {
            let was = files.get(&path).and_then(|file| file.was.as_ref());
            let kept = later.kept(&path, id, was);
            plan.merged.extend(kept.map(|kept| format!("{} ({kept})", cx.show_real(&path))));
        }
        for (path, mode) in &directories {
            plan.add_directory(cx, path, *mode, &files)?;
        }
        for (path, file) in files {
            plan.add(cx, path, file, &log.changes)?;
        }
        plan.nonempty = nonempty_directories(cx, &plan.unneeded, &plan.edits);
        Ok(plan)
    }

    /// Whether files stay as they are because of rules, and whether others stay because they are protected.
    pub(crate) fn keeps_denied_and_protected(&self) -> (bool, bool) {
        let keeps = |is_denied| self.kept.iter().any(|(_, why)| (*why == DENIED) == is_denied);
        (keeps(true), keeps(false))
    }

    fn add_directory(
        &mut self,
        cx: &Cx<'_>,
        path: &Path,
        mode: Option<u32>,
        files: &BTreeMap<PathBuf, CurrentFile>,
    ) -> Result<(), Error> {
        let place = cx.entry(path)?;
        let is_removed = || files.get(path).is_some_and(|file| file.now.is_none());
        match (mode, place.kind()) {
            (None, Some(FileKind::Directory)) => self.unneeded.push(path.to_owned()),
            (None, _) | (Some(_), Some(FileKind::Directory)) => {}
            (Some(_), Some(_)) if !is_removed() => {
                let shown = cx.show_real(path);
                return Err(in_the_way(shown, "was a directory and is something else now"));
            }
            (Some(mode), _) => {
                if require_restorable(cx.paths(), &place).is_ok() {
                    self.needed.push((path.to_owned(), mode));
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        cx: &Cx<'_>,
        path: PathBuf,
        file: CurrentFile,
        known: &[HistoryEntry],
    ) -> Result<(), Error> {
        let mode = file.new_mode();
        let changes = file.was != file.now || mode.is_some();
        let is_restored = file.is_protected && changes;
        let unrestorable =
            || is_restored.then(|| unrestorable(cx, &path, file.now.as_ref(), known)).flatten();
        if let Some(why) = file.kept_reason.or_else(unrestorable) {
            self.kept.push((cx.show_real(&path), why));
            return Ok(());
        }
        if !changes {
            return Ok(());
        }
        if is_restored {
            self.restored.push(path.clone());
        }
        if file.is_directory && file.now.is_some() && !self.unneeded.contains(&path) {
            let shown = cx.show_real(&path);
            return Err(in_the_way(shown, "is a directory now"));
        }
        let mode = mode.map(NewMode::Exactly);
        self.edits.push(FileEdit { path, was: file.was, now: file.now, mode });
        Ok(())
    }
}

/// The files of the selected changes, each with its changes in the order in which they are reverted.
fn changes_by_file<'a>(
    chosen: &'a Selection,
    log: &ChangeLog,
) -> Vec<(PathBuf, Vec<(&'a HistoryEntry, &'a FileChange)>)> {
    let mut files: Vec<(PathBuf, Vec<(&HistoryEntry, &FileChange)>)> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for change in &chosen.changes {
        for file in change.effective_files() {
            let path = file.path();
            if !chosen.includes(&path) {
                continue;
            }
            let at = *places.entry(path.clone()).or_insert(files.len());
            match files.get_mut(at) {
                Some((_, changes)) => changes.push((change, file)),
                None => files.push((path, vec![(change, file)])),
            }
        }
    }
    // They mostly follow each other from the oldest to the newest, which is the first here.
    let is_unordered = |changes: &[(&HistoryEntry, &FileChange)]| {
        changes.windows(2).any(|pair| !follows(pair[1].1, pair[0].1))
    };
    let unordered = files.iter().filter(|(_, changes)| is_unordered(changes));
    let orders = in_order_by_file(&log.changes, unordered.map(|(path, _)| path.clone()));
    for (path, changes) in &mut files {
        if let Some(order) = orders.get(path) {
            let place = |id: u64| order.iter().position(|(one, _)| *one == id);
            changes.sort_by_key(|(change, _)| Reverse(place(change.id)));
        }
    }
    files
}

/// The error if something else has the path of a file or directory to restore.
fn in_the_way(shown: String, what: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("nothing can be undone: {shown} {what}"))
        .hint(format!("Nothing was written. Move {shown} away, then undo again."))
        .with("file_path", shown)
}

/// Why the previous content of a protected file is not restored: an earlier change wrote it, which the
/// protection is to prevent, and it is not known to be the user's own.
fn unrestorable(
    cx: &Cx<'_>,
    path: &Path,
    content: Option<&Content>,
    known: &[HistoryEntry],
) -> Option<&'static str> {
    let content = content?;
    let hash = content.hash();
    let made = |change: &HistoryEntry| {
        let is_it = |file: &FileChange| {
            file.after.is_some_and(|after| after.hash == hash) && file.path() == path
        };
        change.undoes.is_empty() && change.entry.files.iter().any(is_it)
    };
    // The target of a symlink is not the content of a file.
    let is_users = || !content.is_link() && cx.paths().path_rules.is_users_content(path, content);
    (known.iter().any(made) && !is_users()).then_some(WRITTEN_BY_CHANGE)
}
