//! The connections of commands to other machines.

use serde::{Deserialize, Serialize};

use super::Journal;
use crate::error::FsError;

/// A connection that a command made or tried to make. The format is stable: later versions may add fields, but
/// never remove one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// The time of its end, in milliseconds since 1970.
    pub time_ms: u64,
    /// The process of the runtime. Set when it is stored.
    pub process: u32,
    /// The number of the session in that process.
    pub session: u64,
    /// The first directory of its workspace.
    pub workspace: String,
    /// The job, such as `sh_1`.
    pub job: String,
    /// The host: a name, or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address that was connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `allowed`, `refused` or `failed`.
    pub decision: String,
    /// The rule that decided.
    pub rule: String,
    /// Why it was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Bytes from the command to the host.
    pub sent: u64,
    /// Bytes from the host to the command.
    pub received: u64,
    /// How long it lasted.
    pub duration_ms: u64,
}

impl Journal {
    /// Stores a connection. Fails if it cannot be written.
    pub fn record_connection(&self, made: ConnectionRecord) -> Result<(), FsError> {
        let made = ConnectionRecord { process: std::process::id(), ..made };
        self.connections.append(self, &made)
    }

    /// The stored connections, newest first.
    pub fn connections(&self) -> Result<Vec<ConnectionRecord>, FsError> {
        self.connections.read()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::*;

    #[test]
    fn connections_are_listed_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        let made = |time_ms| ConnectionRecord {
            time_ms,
            process: std::process::id(),
            host: "a.example".into(),
            port: 443,
            why: Some("no rule allows it".into()),
            ..ConnectionRecord::default()
        };
        for number in 1..=3 {
            journal.record_connection(made(number)).unwrap();
        }
        assert_eq!(journal.connections().unwrap(), [made(3), made(2), made(1)]);
        assert_eq!(journal.decisions().unwrap(), []);
    }
}
