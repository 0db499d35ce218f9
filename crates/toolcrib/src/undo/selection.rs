//! Selects the changes to undo.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::request::{ChangesBy, UndoRequest};
use crate::error::{Error, ErrorKind};
use crate::history::{ChangeLog, HistoryEntry, undone_parts};
use crate::message_names::{HISTORY, UNDO};
use crate::phrases::{counted, first_of};

/// Changes of ignored files that are named.
const MAX_NAMED_CHANGES: usize = 10;

/// The changes to undo.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Newest first.
    pub(crate) changes: Vec<HistoryEntry>,
    /// Undo them only at these resolved paths and below. Everywhere if there are none.
    pub(crate) only: Vec<PathBuf>,
    /// Undo only this hunk of the one path.
    pub(crate) hunk: Option<usize>,
    /// Newer changes that affect only ignored files and are skipped.
    pub(crate) skipped_ignored: Vec<u64>,
    /// Changes that affect only modes of directories and are skipped.
    pub(crate) skipped_modes: Vec<u64>,
}

impl Selection {
    pub(crate) fn of(
        log: &ChangeLog,
        wanted: UndoRequest,
        by: &ChangesBy,
    ) -> Result<Selection, Error> {
        match wanted {
            UndoRequest::Steps(steps) => last(log, steps, by),
            UndoRequest::StepsAt { steps, paths, shown } => last_at(log, steps, &paths, &shown),
            UndoRequest::One { id, at } => one(log, id, at),
            UndoRequest::Since(id) => since(log, id),
            UndoRequest::Paths { id, paths } => {
                let parts = paths.into_iter().map(|at| one(log, id, Some(at)));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let only = parts.iter().flat_map(|part| part.only.clone()).collect();
                let first = parts.into_iter().next();
                let first = first.ok_or_else(|| Error::invalid("no path is given"))?;
                Ok(Selection { only, ..first })
            }
            UndoRequest::Hunk { id, at, index } => {
                Ok(Selection { hunk: Some(index), ..one(log, id, Some(at))? })
            }
        }
    }

    /// All of these changes.
    pub(crate) fn whole(changes: Vec<HistoryEntry>) -> Selection {
        let (skipped_ignored, skipped_modes) = (Vec::new(), Vec::new());
        Selection { changes, only: Vec::new(), hunk: None, skipped_ignored, skipped_modes }
    }

    /// These changes at one path.
    fn at(path: PathBuf, changes: Vec<HistoryEntry>) -> Selection {
        Selection { only: vec![path], ..Selection::whole(changes) }
    }

    /// Fails at a change of which nothing is stored: Undo must not revert an older one in its place.
    pub(crate) fn require_kept(&self) -> Result<(), Error> {
        let Some(lost) = self.changes.iter().find(|change| change.has_nothing_to_undo()) else {
            return Ok(());
        };
        let names = |paths: &[String]| first_of(paths, MAX_NAMED_CHANGES, String::clone);
        let why = if lost.has_only_modes() {
            let modes = names(&lost.modes);
            format!(
                "it changed only the modes of directories, which {UNDO} does not restore: {modes}"
            )
        } else {
            format!("{UNDO} cannot revert what it did to {}", names(&lost.not_kept))
        };
        let message = format!("change {} cannot be undone: {why}", lost.id);
        Err(Error::new(ErrorKind::Unsupported, message)
            .hint(format!("Nothing was done. {HISTORY} lists the changes.")))
    }

    /// Whether the undo includes a path.
    pub(crate) fn includes(&self, path: &Path) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| path.starts_with(only))
    }

    /// Whether the undo includes a directory, which is created and removed with its entries.
    pub(crate) fn includes_directory(&self, path: &Path) -> bool {
        self.includes(path) || self.only.iter().any(|only| only.starts_with(path))
    }
}

/// Changes that are neither undone nor undos, newest first.
fn effective_changes(log: &ChangeLog) -> impl Iterator<Item = &HistoryEntry> {
    let is_effective =
        |change: &&HistoryEntry| !change.undone && change.reverted().next().is_none();
    log.changes.iter().rev().filter(is_effective)
}

fn last(log: &ChangeLog, steps: usize, by: &ChangesBy) -> Result<Selection, Error> {
    let candidates = || effective_changes(log).filter(|change| by.includes(change));
    let is_skipped = |change: &HistoryEntry| change.only_ignored || change.has_only_modes();
    let chosen: Vec<HistoryEntry> =
        candidates().filter(|change| !is_skipped(change)).take(steps).cloned().collect();
    let oldest = chosen.last().map_or(0, |change| change.id);
    let (ignored, modes): (Vec<&HistoryEntry>, Vec<&HistoryEntry>) = candidates()
        .filter(|change| is_skipped(change) && change.id > oldest)
        .partition(|change| change.only_ignored);
    let ids = |changes: Vec<&HistoryEntry>| changes.iter().map(|change| change.id).collect();
    let (ignored, modes): (Vec<u64>, Vec<u64>) = (ids(ignored), ids(modes));
    if chosen.len() == steps {
        let whole = Selection::whole(chosen);
        return Ok(Selection { skipped_ignored: ignored, skipped_modes: modes, ..whole });
    }
    if let ChangesBy::Session { others, .. } = by {
        let message = match chosen.len() {
            0 => "this session has made no change that can be undone".to_owned(),
            known => format!(
                "this session has made only {} that can be undone",
                counted(known as u64, "change")
            ),
        };
        let others: Vec<u64> = others.iter().rev().copied().collect();
        return Err(not_found(message).hint(format!(
            "Nothing was done. Other sessions work here: {UNDO} with id reverts one of their changes: {}.",
            first_of(&others, MAX_NAMED_CHANGES, u64::to_string)
        )));
    }
    let error = match (chosen.len(), ignored.as_slice()) {
        (0, []) => not_found("there is nothing to undo"),
        (0, _) => not_found("only changes of ignored files can be undone"),
        (1, _) => not_found("there is only 1 change to undo"),
        (known, _) => not_found(format!("there are only {known} changes to undo")),
    };
    let error = match modes.as_slice() {
        [] => error,
        ids => {
            let ids = first_of(ids, MAX_NAMED_CHANGES, u64::to_string);
            error.detail_line(&format!(
                "[skipped {ids}: only modes of directories changed, which {UNDO} does not restore]"
            ))
        }
    };
    Err(match ignored.as_slice() {
        [] => error.hint(format!("Nothing was done. {HISTORY} lists the changes.")),
        ids => error
            .hint(format!(
                "Nothing was done. A plain {UNDO} skips changes that touched only ignored files. {UNDO} with id reverts one of them: {}.",
                first_of(ids, MAX_NAMED_CHANGES, u64::to_string)
            ))
            .with("ignored", ids),
    })
}

fn last_at(
    log: &ChangeLog,
    steps: usize,
    paths: &[PathBuf],
    shown: &str,
) -> Result<Selection, Error> {
    let at = |path: &Path| -> Vec<HistoryEntry> {
        effective_changes(log)
            .filter(|change| change.is_effective_at(path))
            .take(steps)
            .cloned()
            .collect()
    };
    let found = paths.iter().map(|path| (path, at(path))).find(|(_, changes)| !changes.is_empty());
    let hint = format!("Nothing was done. {HISTORY} lists the changes.");
    match found {
        None => Err(not_found(format!("there is no change of {shown} to undo")).hint(hint)),
        Some((_, changes)) if changes.len() < steps => {
            let known = changes.len();
            Err(not_found(format!("there are only {known} changes of {shown} to undo")).hint(hint))
        }
        Some((path, changes)) => Ok(Selection::at(path.clone(), changes)),
    }
}

fn one(log: &ChangeLog, id: u64, at: Option<(Vec<PathBuf>, String)>) -> Result<Selection, Error> {
    let change = find(log, id)?;
    if change.undone {
        return Err(already_undone(log, Some(id), format!("change {id} is already undone")));
    }
    let whole = Selection::whole(vec![change.clone()]);
    whole.require_kept()?;
    let Some((paths, shown)) = at else {
        return Ok(whole);
    };
    if change.reverted().next().is_some() {
        return Err(Error::invalid(format!(
            "change {id} is an undo and can only be reverted as a whole"
        ))
        .hint("Nothing was done. Omit path."));
    }
    match paths.into_iter().find(|path| change.is_effective_at(path)) {
        Some(path) => Ok(Selection::at(path, whole.changes)),
        None => {
            let is_undone = change.files.iter().any(|file| file.path == shown);
            Err(if is_undone {
                already_undone(log, Some(id), format!("change {id} of {shown} is already undone"))
            } else {
                not_found(format!("change {id} did not change {shown}"))
                    .hint(format!("Nothing was done. {HISTORY} with its id shows what it changed."))
            })
        }
    }
}

/// All changes from one on, so that the files are as they were before it. An undo made since then of an earlier
/// change is reverted too; an undo of a later change has no effect any more.
fn since(log: &ChangeLog, since: u64) -> Result<Selection, Error> {
    find(log, since)?;
    let inside = || log.changes.iter().filter(|change| change.id >= since);
    let reaches_back = |change: &&HistoryEntry| {
        !change.undone && change.undoes.iter().any(|undone| *undone < since)
    };
    let reopened: HashSet<u64> = inside().filter(reaches_back).map(|change| change.id).collect();
    let mut undone = undone_parts(log.changes.iter().map(|change| &change.entry), &reopened);
    let mut changes: Vec<HistoryEntry> = Vec::new();
    for change in inside() {
        let undone_parts = undone.remove(&change.id).unwrap_or_default();
        let is_effective = change.undoes.is_empty()
            && !undone_parts.is_all_of(&change.entry)
            && !change.has_nothing_to_undo();
        if is_effective || reopened.contains(&change.id) {
            changes.push(HistoryEntry { undone_parts, ..change.clone() });
        }
    }
    changes.reverse();
    if changes.is_empty() {
        return Err(already_undone(
            log,
            None,
            format!("all changes since {since} are already undone"),
        ));
    }
    let only_modes = inside().filter(|change| change.has_only_modes() && !change.undone);
    let skipped_modes = only_modes.map(|change| change.id).collect();
    Ok(Selection { skipped_modes, ..Selection::whole(changes) })
}

/// The changes before `id` that an undo without an id could select, newest first.
pub(crate) fn changes_before<'a>(
    log: &'a ChangeLog,
    id: u64,
    by: &'a ChangesBy,
) -> impl Iterator<Item = &'a HistoryEntry> {
    effective_changes(log).filter(move |change| {
        change.id < id
            && !change.only_ignored
            && !change.has_nothing_to_undo()
            && by.includes(change)
    })
}

fn find(log: &ChangeLog, id: u64) -> Result<&HistoryEntry, Error> {
    log.find(id).map_err(|error| match error.kind() {
        ErrorKind::NotFound if error.hint_text().is_empty() => {
            error.hint(format!("{HISTORY} lists the changes."))
        }
        _ => error,
    })
}

/// The error for changes that are already undone. `id` is the change, if there is only one.
fn already_undone(log: &ChangeLog, id: Option<u64>, message: String) -> Error {
    let undid = |id| {
        let undos =
            log.changes.iter().filter(move |change| !change.undone && change.undoes.contains(&id));
        undos.map(|undo| undo.id)
    };
    let undos: Vec<u64> = id.into_iter().flat_map(undid).collect();
    let hint = match undos.as_slice() {
        [] => format!("{HISTORY} lists the undos; {UNDO} with the id of one redoes its changes."),
        [only] => format!("{UNDO} with id {only} redoes it."),
        several => {
            let ids: Vec<String> = several.iter().map(u64::to_string).collect();
            format!(
                "Several undos reverted parts of it: {UNDO} with id {} redoes a part.",
                ids.join(" or ")
            )
        }
    };
    Error::new(ErrorKind::AlreadyApplied, message).hint(format!("Nothing was done. {hint}"))
}

fn not_found(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotFound, message)
}
