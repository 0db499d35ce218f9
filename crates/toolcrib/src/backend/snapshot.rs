//! Points in the journal, and the way back to them.

use serde_json::json;

use super::Backend;
use crate::decode::decode;
use crate::edit_checks::Reader;
use crate::error::{Error, ErrorKind};
use crate::request::Call;
use crate::tool_table::Row;

/// The result of [`Backend::restore`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// Ids of the reverted changes.
    pub undone: Vec<u64>,
    /// The number of restored files.
    pub files: u64,
}

impl Backend<'_> {
    /// The current point in the journal.
    ///
    /// # Errors
    ///
    /// Fails without a journal.
    pub fn snapshot(&self) -> Result<u64, Error> {
        let log = self.runtime.services().history.session_changes(self.session)?;
        Ok(log.changes.last().map_or(0, |change| change.id))
    }

    /// Reverts all changes of files since a snapshot, also those of commands, like Undo.
    ///
    /// # Errors
    ///
    /// Fails if there is no such snapshot, and with kind [`ErrorKind::Conflict`] if a file was changed outside Toolcrib so that a change cannot be
    /// reverted. Nothing is written then.
    pub fn restore(&self, snapshot: u64) -> Result<Restored, Error> {
        let log = self.runtime.services().history.session_changes(self.session)?;
        if snapshot > log.changes.last().map_or(0, |change| change.id) {
            let message = format!("there is no snapshot {snapshot}");
            return Err(Error::new(ErrorKind::NotFound, message).hint("Nothing was done."));
        }
        let Some(first) = log.changes.iter().find(|change| change.id > snapshot) else {
            return Ok(Restored::default());
        };
        let call = Call::new("Undo", json!({"since": first.id}));
        let decode = |row: &Row| decode(&row.entry, row.schema(), call.args.clone());
        match self.runtime.call_decoded(self.session, &call, self.options, &decode, Reader::Program)
        {
            Ok(reply) => {
                let undone = reply.metadata().get("undone").and_then(|ids| ids.as_array());
                let undone = undone.into_iter().flatten().filter_map(serde_json::Value::as_u64);
                let files = reply.metadata().get("files").and_then(serde_json::Value::as_u64);
                Ok(Restored { undone: undone.collect(), files: files.unwrap_or(0) })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyApplied => Ok(Restored::default()),
            Err(error) => Err(error),
        }
    }
}
