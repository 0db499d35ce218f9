//! The history and the logs of the workspace, for the operator.

use std::ops::ControlFlow;
use std::path::PathBuf;

use toolcrib_fs::{AuditOutbox, AuditReport};

use super::Runtime;
use crate::backup_source::BackupSource;
use crate::decision_log::DecisionEntry;
use crate::error::Error;
use crate::history::{ChangeLog, FileDiff, HistoryEntry};
use crate::network::{ConnectionEntry, connections};

impl Runtime {
    /// Returns the changes in this workspace, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the journal cannot be read.
    pub fn history(&self) -> Result<Vec<HistoryEntry>, Error> {
        Ok(self.change_log()?.changes)
    }

    /// Like [`Runtime::history`], with the damaged changes.
    pub fn change_log(&self) -> Result<ChangeLog, Error> {
        self.services.history.change_log()
    }

    /// Returns the diff of a change. Files in ignored directories are counted.
    ///
    /// # Errors
    ///
    /// Fails with kind [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the journal no longer has the content.
    pub fn diff_of(&self, change: &HistoryEntry) -> Result<String, Error> {
        self.services.history.diff_of(change, |_| true)
    }

    /// Returns the files of a change with their hunks, and whether files are left out. Ignored files are included.
    pub fn file_diffs(&self, change: &HistoryEntry) -> (Vec<FileDiff>, bool) {
        self.services.history.file_diffs(change)
    }

    /// Returns the numbers of added and removed lines. `None` if the journal no longer has the content, or if the
    /// change is too large to be counted while a person waits.
    pub fn lines_of(&self, change: &HistoryEntry) -> Option<(usize, usize)> {
        self.services.history.lines_of(change)
    }

    /// Returns the combined diff of all changes, or of those from the id `since` on: each file before the first
    /// of them against its current content. Files in ignored directories are counted.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the journal cannot be read.
    pub fn diff_since(&self, since: Option<u64>) -> Result<String, Error> {
        self.services.history.diff_since(since)
    }

    /// Returns the logged decisions in this workspace, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the log cannot be read.
    pub fn decisions(&self) -> Result<Vec<DecisionEntry>, Error> {
        self.services.decisions.entries()
    }

    /// Returns the innermost workspace with logged calls that contains the first root of this one. `None` if calls were
    /// logged for this root itself, or for none around it.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the log cannot be read.
    pub fn enclosing_workspace(&self) -> Result<Option<PathBuf>, Error> {
        self.services.decisions.enclosing_workspace()
    }

    /// Checks that decisions can be logged now. Succeeds if the runtime has no journal.
    pub fn check_decisions(&self) -> Result<(), Error> {
        self.services.decisions.check()
    }

    /// Checks the audit log of this workspace from its first record to its last. `kept` is the hash of a record that was
    /// kept elsewhere: without one, a log whose end was cut off, or that was rewritten as a whole, looks right.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the log cannot be read. A wrong record is in the report.
    pub fn verify_audit(&self, kept: Option<&str>) -> Result<AuditReport, Error> {
        self.services.calls.verify_audit(kept)
    }

    /// Returns the audit log of this workspace, to send its records elsewhere. `None` if the runtime has no journal, or
    /// does not record calls in the log.
    pub fn audit_outbox(&self) -> Option<AuditOutbox> {
        self.services.calls.audit_outbox()
    }

    /// Returns the files and the history of this workspace, to copy them elsewhere.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal, or not exactly one root that tools may change.
    pub fn backup_source(&self) -> Result<BackupSource, Error> {
        BackupSource::new(&self.services.paths, &self.services.history)
    }

    /// Passes the lines of the audit log of this workspace to `visit`, oldest first, without newlines. Each is a JSON
    /// object; [`crate::AuditEvent`] has its members.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the log cannot be read.
    pub fn audit_lines(&self, visit: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        self.services.calls.audit_lines(visit)
    }

    /// Returns the logged connections of commands in this workspace, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the log cannot be read.
    pub fn connections(&self) -> Result<Vec<ConnectionEntry>, Error> {
        let journal = self.services.history.require_journal()?;
        connections(journal, &self.services.paths.workspace)
    }
}
