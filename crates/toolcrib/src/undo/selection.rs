//! Which changes are taken back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::request::Wanted;
use crate::error::{Error, ErrorKind};
use crate::history::{ChangeLog, HistoryEntry, taken_back};
use crate::names::{HISTORY, UNDO};
use crate::phrases::first_of;

/// So many changes of ignored files are named.
const NAMED: usize = 10;

/// The changes that are taken back.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// From the newest to the oldest.
    pub(crate) changes: Vec<HistoryEntry>,
    /// Only what they did at this real path and beneath it.
    pub(crate) only: Option<PathBuf>,
    /// Changes of ignored files alone that are newer than some of them, and stay.
    pub(crate) passed_over: Vec<u64>,
}

impl Chosen {
    pub(crate) fn of(log: &ChangeLog, wanted: Wanted) -> Result<Chosen, Error> {
        match wanted {
            Wanted::Steps(steps) => last(log, steps),
            Wanted::StepsAt { steps, paths, shown } => last_at(log, steps, &paths, &shown),
            Wanted::One { id, at } => one(log, id, at),
            Wanted::Since(id) => since(log, id),
        }
    }

    /// Whether it is about a path.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.only.as_ref().is_none_or(|only| path.starts_with(only))
    }

    /// The same for a directory, which comes and goes with what is in it.
    pub(crate) fn covers_directory(&self, path: &Path) -> bool {
        self.covers(path) || self.only.as_ref().is_some_and(|only| only.starts_with(path))
    }
}

/// Changes that stand and take back none, from the newest to the oldest.
fn standing(log: &ChangeLog) -> impl Iterator<Item = &HistoryEntry> {
    log.changes.iter().rev().filter(|change| !change.undone && change.undoes.is_empty())
}

fn last(log: &ChangeLog, steps: usize) -> Result<Chosen, Error> {
    let chosen: Vec<HistoryEntry> =
        standing(log).filter(|change| !change.only_ignored).take(steps).cloned().collect();
    let oldest = chosen.last().map_or(0, |change| change.id);
    let ignored = standing(log).filter(|change| change.only_ignored && change.id > oldest);
    let ignored: Vec<u64> = ignored.map(|change| change.id).collect();
    if chosen.len() == steps {
        return Ok(Chosen { changes: chosen, only: None, passed_over: ignored });
    }
    let error = match (chosen.len(), ignored.as_slice()) {
        (0, []) => not_found("there is nothing to take back"),
        (0, _) => not_found("there is nothing to take back but changes of ignored files"),
        (known, _) => not_found(format!("there are only {known} changes to take back")),
    };
    Err(match ignored.as_slice() {
        [] => error.hint(format!("Nothing was done. {HISTORY} lists the changes.")),
        ids => error
            .hint(format!(
                "Nothing was done. A plain {UNDO} passes over changes of ignored files alone; {UNDO} with id takes one of them back: {}.",
                first_of(ids, NAMED, u64::to_string)
            ))
            .with("ignored", ids),
    })
}

fn last_at(log: &ChangeLog, steps: usize, paths: &[PathBuf], shown: &str) -> Result<Chosen, Error> {
    let at = |path: &Path| -> Vec<HistoryEntry> {
        standing(log).filter(|change| change.stands_at(path)).take(steps).cloned().collect()
    };
    let found = paths.iter().map(|path| (path, at(path))).find(|(_, changes)| !changes.is_empty());
    let hint = format!("Nothing was done. {HISTORY} lists the changes.");
    match found {
        None => Err(not_found(format!("there is no change of {shown} to take back")).hint(hint)),
        Some((_, changes)) if changes.len() < steps => {
            let known = changes.len();
            Err(not_found(format!("there are only {known} changes of {shown} to take back"))
                .hint(hint))
        }
        Some((path, changes)) => {
            Ok(Chosen { changes, only: Some(path.clone()), passed_over: Vec::new() })
        }
    }
}

fn one(log: &ChangeLog, id: u64, at: Option<(Vec<PathBuf>, String)>) -> Result<Chosen, Error> {
    let change = find(log, id)?;
    if change.undone {
        return Err(taken_back_already(format!("change {id} is taken back already")));
    }
    let changes = vec![change.clone()];
    let Some((paths, shown)) = at else {
        return Ok(Chosen { changes, only: None, passed_over: Vec::new() });
    };
    if !change.undoes.is_empty() {
        return Err(Error::invalid(format!(
            "change {id} is an undo, and is taken back as a whole"
        ))
        .hint("Nothing was done. Leave out path."));
    }
    match paths.into_iter().find(|path| change.stands_at(path)) {
        Some(path) => Ok(Chosen { changes, only: Some(path), passed_over: Vec::new() }),
        None => {
            let is_taken_back = change.files.iter().any(|file| file.path == shown);
            Err(match is_taken_back {
                true => taken_back_already(format!("change {id} of {shown} is taken back already")),
                false => not_found(format!("change {id} did not change {shown}")).hint(format!(
                    "Nothing was done. {HISTORY} with its id shows what it changed."
                )),
            })
        }
    }
}

/// All changes from one on, so that the files are as they were before it. An undo made since then of a change
/// from before is taken back too; an undo of a change made since then has nothing to do any more.
fn since(log: &ChangeLog, since: u64) -> Result<Chosen, Error> {
    find(log, since)?;
    let inside = || log.changes.iter().filter(|change| change.id >= since);
    let reaches_back = |change: &&HistoryEntry| {
        !change.undone && change.undoes.iter().any(|undone| *undone < since)
    };
    let reopened: HashSet<u64> = inside().filter(reaches_back).map(|change| change.id).collect();
    let mut taken = taken_back(log.changes.iter().map(|change| &change.entry), &reopened);
    let mut changes: Vec<HistoryEntry> = Vec::new();
    for change in inside() {
        let taken_back = taken.remove(&change.id).unwrap_or_default();
        let stands = change.undoes.is_empty() && !taken_back.is_all_of(&change.entry);
        if stands || reopened.contains(&change.id) {
            changes.push(HistoryEntry { taken_back, ..change.clone() });
        }
    }
    changes.reverse();
    if changes.is_empty() {
        return Err(taken_back_already(format!(
            "all changes since {since} are taken back already"
        )));
    }
    Ok(Chosen { changes, only: None, passed_over: Vec::new() })
}

fn find(log: &ChangeLog, id: u64) -> Result<&HistoryEntry, Error> {
    log.find(id).map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.hint(format!("{HISTORY} lists the changes.")),
        _ => error,
    })
}

fn taken_back_already(message: String) -> Error {
    Error::new(ErrorKind::AlreadyApplied, message)
        .hint("Nothing was done. To have it again, give the id of the change that took it back.")
}

fn not_found(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotFound, message)
}
