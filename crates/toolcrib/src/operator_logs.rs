//! The logs of all workspaces in a state directory, for the operator.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use toolcrib_fs::{
    CallPage, CallRecord, Caps, CommandEndRecord, ConnectionRecord, DecisionRecord, Entry, Journal,
};

use crate::error::{Error, ErrorKind};
use crate::journal_errors::journal_error;

/// The logs in a state directory: calls, decisions, connections and changes of every workspace of the user.
pub struct OperatorLogs {
    journal: Journal,
}

impl OperatorLogs {
    /// Opens the logs. Nothing is created.
    ///
    /// # Errors
    ///
    /// Fails if another user could access the directory, or if a newer program has written it.
    pub fn open(directory: &Path, caps: Caps) -> Result<OperatorLogs, Error> {
        let journal = Journal::open(directory, caps).map_err(|error| journal_error(&error))?;
        Ok(OperatorLogs { journal })
    }

    /// Returns the wanted calls, newest first, from a cursor back. The page may have fewer calls than `limit` and
    /// still a cursor: one call reads a bounded part of the log.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn calls(
        &self,
        before: Option<&str>,
        limit: usize,
        is_wanted: impl FnMut(&CallRecord) -> bool,
    ) -> Result<CallPage, Error> {
        self.journal.calls(before, limit, is_wanted).map_err(|error| journal_error(&error))
    }

    /// Returns the call with this id.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn call(&self, id: &str) -> Result<Option<CallRecord>, Error> {
        self.journal.call(id).map_err(|error| journal_error(&error))
    }

    /// Returns the number of logged calls.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn count_calls(&self) -> Result<u64, Error> {
        self.journal.count_calls().map_err(|error| journal_error(&error))
    }

    /// Returns the logged decisions of all workspaces, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn decisions(&self) -> Result<Vec<DecisionRecord>, Error> {
        self.journal.decisions().map_err(|error| journal_error(&error))
    }

    /// Returns the logged ends of commands that went on after their calls, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn command_ends(&self) -> Result<Vec<CommandEndRecord>, Error> {
        self.journal.command_ends().map_err(|error| journal_error(&error))
    }

    /// Returns the logged connections of all workspaces, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn connections(&self) -> Result<Vec<ConnectionRecord>, Error> {
        self.journal.connections().map_err(|error| journal_error(&error))
    }

    /// Returns the workspaces with logged decisions, each with the time of the last one in milliseconds since 1970,
    /// the most recent first.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn workspaces(&self) -> Result<Vec<(PathBuf, u64)>, Error> {
        let mut last: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for decided in self.decisions()? {
            // 0.1.0 stored the directory with a slash at its end.
            let path = Path::new(&decided.workspace).components().collect();
            let time = last.entry(path).or_default();
            *time = decided.time_ms.max(*time);
        }
        let mut all: Vec<(PathBuf, u64)> = last.into_iter().collect();
        all.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        Ok(all)
    }

    /// Returns the first paths of these changes, and the number of all, by their ids.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn changed_paths(&self, ids: &[u64]) -> Result<HashMap<u64, (PathBuf, usize)>, Error> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let entries = self.journal.entries().map_err(|error| journal_error(&error))?;
        let wanted = entries.iter().filter(|entry| ids.contains(&entry.id));
        let changed = wanted.filter_map(|entry| {
            let first = entry.files.first()?.path();
            Some((entry.id, (first, entry.files.len())))
        });
        Ok(changed.collect())
    }

    /// Returns the workspace of a change: the one that contains its first path, the innermost if there are several.
    ///
    /// # Errors
    ///
    /// Fails with kind [`ErrorKind::NotFound`] if there is no such change, or no workspace that contains it.
    pub fn workspace_of_change(&self, id: u64) -> Result<PathBuf, Error> {
        let not_found =
            || Error::new(ErrorKind::NotFound, format!("there is no change {id} in the journal"));
        let entries = self.journal.entries().map_err(|error| journal_error(&error))?;
        let find = |id: u64| entries.iter().find(|entry| entry.id == id);
        let mut entry: &Entry = find(id).ok_or_else(not_found)?;
        // An undo without an effect has no paths. It belongs to the workspace of the undone change.
        while entry.paths().next().is_none() {
            let undone = entry.about.undoes.first().and_then(|id| find(*id));
            entry = undone.filter(|undone| undone.id < entry.id).ok_or_else(not_found)?;
        }
        let workspaces = self.workspaces()?;
        let holding = |path: &Path| {
            let around = workspaces.iter().filter(|(workspace, _)| path.starts_with(workspace));
            around.max_by_key(|(workspace, _)| workspace.components().count()).cloned()
        };
        let found = entry.paths().find_map(|path| holding(&path));
        found.map(|(workspace, _)| workspace).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("change {id} is outside every workspace that the journal knows"),
            )
        })
    }
}
