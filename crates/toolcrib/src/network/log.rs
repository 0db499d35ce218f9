//! The log of connections, for the operator.

use std::sync::Arc;

use toolcrib_fs::{ConnectionRecord, Journal, Workspace};

use crate::error::Error;
use crate::journal_errors::journal_error;
use crate::phrases::age;

/// A logged connection of a command in this workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionEntry {
    /// The time of its end, or of its start if it is open, in milliseconds since 1970.
    pub time_ms: u64,
    /// The session, and the job in it.
    pub session: u64,
    /// The job, such as `sh_1`.
    pub job: String,
    /// Whether its end was not logged: it is open, or was so when the runtime ended. The bytes are not known.
    pub is_open: bool,
    /// The host: a name, or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address that was connected to.
    pub address: Option<String>,
    /// `allowed`, `refused` or `failed`.
    pub decision: String,
    /// The rule that decided.
    pub rule: String,
    /// Why it was refused or failed.
    pub why: Option<String>,
    /// Bytes from the command to the host.
    pub sent: u64,
    /// Bytes from the host to the command.
    pub received: u64,
    /// How long it lasted, in milliseconds.
    pub duration_ms: u64,
}

/// Receives connections as they are opened, refused and closed.
pub(crate) type ConnectionSink = Arc<dyn Fn(&ConnectionEntry) + Send + Sync>;

impl ConnectionEntry {
    /// Age of its last record, in words.
    pub fn age(&self) -> String {
        age(self.time_ms)
    }
}

/// A connection without what only the journal needs.
pub(super) fn entry(made: ConnectionRecord) -> ConnectionEntry {
    ConnectionEntry {
        time_ms: made.time_ms,
        session: made.session,
        job: made.job,
        is_open: made.is_open,
        host: made.host,
        port: made.port,
        address: made.address,
        decision: made.decision,
        rule: made.rule,
        why: made.why,
        sent: made.sent,
        received: made.received,
        duration_ms: made.duration_ms,
    }
}

/// The logged connections of commands in this workspace, newest first.
pub(crate) fn connections(
    journal: &Journal,
    workspace: &Workspace,
) -> Result<Vec<ConnectionEntry>, Error> {
    let all = journal.connections().map_err(|error| journal_error(&error))?;
    let here = workspace.top().path().display().to_string();
    Ok(all.into_iter().filter(|made| made.workspace == here).map(entry).collect())
}
