//! The connections of commands to other machines.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Journal;
use crate::error::FsError;

/// A connection that a command made or tried to make. The format is stable: later versions may add fields, but
/// never remove one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// The time of the record, in milliseconds since 1970.
    pub time_ms: u64,
    /// The process of the runtime. Set when it is stored.
    pub process: u32,
    /// The number of the session in that process.
    pub session: u64,
    /// The first directory of its workspace.
    pub workspace: String,
    /// The job, such as `sh_1`.
    pub job: String,
    /// The number of the connection in its network namespace.
    #[serde(default)]
    pub number: u64,
    /// Whether the connection was just made. The record of its end follows, unless the process ended before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
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
        let log = match made.decision.as_str() {
            "allowed" => &self.connections,
            _ => &self.refused_connections,
        };
        log.append(self, &made).map(drop)
    }

    /// The stored connections, newest first. A connection has one record.
    pub fn connections(&self) -> Result<Vec<ConnectionRecord>, FsError> {
        let mut all: Vec<ConnectionRecord> = self.connections.read()?;
        all.extend(self.refused_connections.read::<ConnectionRecord>()?);
        let identity =
            |made: &ConnectionRecord| (made.process, made.session, made.job.clone(), made.number);
        let ended: HashSet<_> = all.iter().filter(|made| !made.is_open).map(identity).collect();
        all.retain(|made| !made.is_open || !ended.contains(&identity(made)));
        // Records of the same time stay in their order.
        all.sort_by_key(|made| std::cmp::Reverse(made.time_ms));
        Ok(all)
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

    fn record(number: u64, decision: &str) -> ConnectionRecord {
        ConnectionRecord {
            time_ms: number,
            number,
            job: "sh_1".into(),
            host: "a.example".into(),
            decision: decision.into(),
            ..ConnectionRecord::default()
        }
    }

    /// A sweep of refused connections does not replace the records of others.
    #[test]
    fn refused_connections_replace_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        journal.record_connection(record(1, "allowed")).unwrap();
        let why = Some("x".repeat(50_000));
        for number in 2..300 {
            let refused = ConnectionRecord { why: why.clone(), ..record(number, "refused") };
            journal.record_connection(refused).unwrap();
        }
        let all = journal.connections().unwrap();
        assert!(all.len() < 299, "the log is bounded");
        assert_eq!(all.last().unwrap().decision, "allowed");
    }

    #[test]
    fn an_open_connection_is_listed_until_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        let open = |number| ConnectionRecord { is_open: true, ..record(number, "allowed") };
        for made in [open(1), open(2), open(3)] {
            journal.record_connection(made).unwrap();
        }
        journal.record_connection(record(1, "allowed")).unwrap();
        journal.record_connection(record(3, "refused")).unwrap();
        let all = journal.connections().unwrap();
        let listed: Vec<_> = all.iter().map(|made| (made.number, made.is_open)).collect();
        assert_eq!(listed, [(3, false), (2, true), (1, false)]);
    }
}
