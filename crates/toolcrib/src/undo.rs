//! Taking changes back, on today's files.
//!
//! A change is taken back as an inverse patch: where a file is as the change left it, it gets back what
//! it said before; where it was changed since, the two are merged line by line, so that later
//! work stays. Where both touch the same lines there is no answer, and nothing is written. A symlink gets back
//! its target, and is neither followed nor merged. Directories come back with their modes, and those that were
//! made go if they are empty.
//!
//! A protected file gets back what it said before the change, byte by byte, and nothing else: it is not merged,
//! it does not get back what an earlier change wrote, and what was taken back is not done again. Otherwise it
//! is left as it is, and the rest is taken back without it.

mod current_file;
mod request;
mod selection;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, FileChange, FileKind, KeptDirectory, KeptPath, NewMode, Version};

pub(crate) use self::request::{Wanted, real_paths};
pub(crate) use self::selection::Chosen;

use self::current_file::{Today, conflict};
use crate::cx::{Cx, FileEdit};
use crate::error::Error;
use crate::history::{ChangeLog, HistoryEntry};
use crate::path_access::require_restorable;
use crate::phrases::first_of;

/// So many later changes of a file are named.
const NAMED: usize = 5;

/// What would be written, all at once.
pub(crate) struct Plan {
    pub(crate) edits: Vec<FileEdit>,
    /// Directories to make, with their modes, each before those in it.
    pub(crate) needed: Vec<(PathBuf, u32)>,
    /// Directories that go if they are empty, each before those in it.
    pub(crate) unneeded: Vec<PathBuf>,
    /// Files in which later changes were kept, and which those are.
    pub(crate) merged: Vec<String>,
    /// Protected files that get back what they said before.
    pub(crate) restored: Vec<PathBuf>,
    /// Protected files that stay as they are, and why.
    pub(crate) left: Vec<(String, &'static str)>,
}

const MADE_BY_CHANGE: &str = "what it said before was written by an earlier change";

impl Plan {
    /// Takes back what was chosen, of all changes that are known.
    pub(crate) fn of(cx: &Cx<'_>, chosen: &Chosen, log: &ChangeLog) -> Result<Plan, Error> {
        let mut files: BTreeMap<PathBuf, Today> = BTreeMap::new();
        let mut merged: BTreeMap<PathBuf, u64> = BTreeMap::new();
        // Whether each is to be there, and with which mode.
        let mut directories: BTreeMap<PathBuf, Option<u32>> = BTreeMap::new();
        for change in &chosen.changes {
            for file in change.standing_files() {
                let path = file.path();
                if !chosen.covers(&path) {
                    continue;
                }
                if !files.contains_key(&path) {
                    files.insert(path.clone(), Today::of(cx, &path)?);
                }
                if let Some(today) = files.get_mut(&path)
                    && today.take_back(cx, file, change)?
                {
                    merged.insert(path, change.id);
                }
            }
            let made = change.entry.directories.iter().map(KeptPath::path);
            let made = made.map(|path| (path, None));
            let removed = change.entry.removed.iter();
            let removed = removed.map(|kept: &KeptDirectory| (kept.path(), Some(kept.mode)));
            let all = made.chain(removed);
            let meant = |(path, _): &(PathBuf, Option<u32>)| {
                chosen.covers_directory(path) && !change.taken_back.has(path)
            };
            directories.extend(all.filter(meant));
        }
        let mut plan = Plan {
            edits: Vec::new(),
            needed: Vec::new(),
            unneeded: Vec::new(),
            merged: Vec::new(),
            restored: Vec::new(),
            left: Vec::new(),
        };
        for (path, id) in merged {
            let kept = later_changes(log, &path, id, files.get(&path));
            plan.merged.push(format!("{} ({kept})", cx.show_real(&path)));
        }
        for (path, mode) in &directories {
            plan.add_directory(cx, path, *mode, &files)?;
        }
        for (path, today) in files {
            plan.add(cx, path, today, &log.changes)?;
        }
        Ok(plan)
    }

    fn add_directory(
        &mut self,
        cx: &Cx<'_>,
        path: &Path,
        mode: Option<u32>,
        files: &BTreeMap<PathBuf, Today>,
    ) -> Result<(), Error> {
        let place = cx.entry(path)?;
        let goes = || files.get(path).is_some_and(|today| today.now.is_none());
        match (mode, place.kind()) {
            (None, Some(FileKind::Directory)) => self.unneeded.push(path.to_owned()),
            (None, _) | (Some(_), Some(FileKind::Directory)) => {}
            (Some(_), Some(_)) if !goes() => {
                let shown = cx.show_real(path);
                let what = format!("{shown} was a directory, and something else has its name now");
                return Err(conflict(None, what).with("file_path", shown));
            }
            (Some(mode), _) => {
                if require_restorable(cx.runtime(), &place).is_ok() {
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
        today: Today,
        known: &[HistoryEntry],
    ) -> Result<(), Error> {
        let mode = today.new_mode();
        let changes = today.was != today.now || mode.is_some();
        if today.is_protected && (changes || today.left.is_some()) {
            match today.left.or_else(|| made_by_change(&path, today.now.as_ref(), known)) {
                Some(why) => {
                    self.left.push((cx.show_real(&path), why));
                    return Ok(());
                }
                None => self.restored.push(path.clone()),
            }
        }
        if !changes {
            return Ok(());
        }
        if today.is_directory && today.now.is_some() && !self.unneeded.contains(&path) {
            let shown = cx.show_real(&path);
            let what = format!("{shown} is a directory now");
            return Err(conflict(None, what).with("file_path", shown));
        }
        let mode = mode.map(NewMode::Exactly);
        self.edits.push(FileEdit { path, was: today.was, now: today.now, mode });
        Ok(())
    }
}

/// Whose later changes of a file were kept, in words.
fn later_changes(log: &ChangeLog, path: &Path, id: u64, today: Option<&Today>) -> String {
    let of_path = |change: &HistoryEntry| {
        change.standing_files().find(|file| file.path() == path).map(|file| (change.id, file.after))
    };
    let later = log.changes.iter().filter(|change| change.id > id && !change.undone);
    let later: Vec<(u64, _)> = later.filter_map(of_path).collect();
    let standing = today.and_then(|today| today.was.as_ref());
    let is_known = later.last().is_some_and(|(_, after)| Version::is(*after, standing));
    let ids: Vec<u64> = later.iter().map(|(id, _)| *id).collect();
    let changes = match ids.len() {
        1 => format!("change {}", ids[0]),
        _ => format!("changes {}", first_of(&ids, NAMED, u64::to_string)),
    };
    match (ids.is_empty(), is_known) {
        (true, _) => "not made by these tools".to_owned(),
        (false, true) => changes,
        (false, false) => format!("{changes}, and others not made by these tools"),
    }
}

/// Why a protected file does not get a content back: a change had put it there, which the protection is to
/// prevent.
fn made_by_change(
    path: &Path,
    content: Option<&Content>,
    known: &[HistoryEntry],
) -> Option<&'static str> {
    let hash = content?.hash();
    let made = |change: &HistoryEntry| {
        let is_it = |file: &FileChange| {
            file.after.is_some_and(|after| after.hash == hash) && file.path() == path
        };
        change.undoes.is_empty() && change.entry.files.iter().any(is_it)
    };
    known.iter().any(made).then_some(MADE_BY_CHANGE)
}
