//! The decisions about calls: one line of JSON each, in two files of bounded size.
//!
//! They are stored with fewer guarantees than changes: a line that a crash cut off is skipped, and writes are
//! not synced.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use super::{Journal, LOCK_TIMEOUT};
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;

const CURRENT: &str = "decisions";
const PREVIOUS: &str = "decisions.before";

/// When the current file reaches this size, it replaces the older one.
const MAX_BYTES: u64 = 4 << 20;

/// Longer lines are not stored.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A decision about a call. The format is stable: later versions may add fields, but never remove one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// The process that received the call. Set when it is stored.
    pub process: u32,
    /// The number of the session in that process.
    pub session: u64,
    /// The first directory of its workspace.
    pub workspace: String,
    /// The tool.
    pub tool: String,
    /// The objects of the call, such as paths.
    pub what: Vec<String>,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// The rule that decided.
    pub rule: String,
    /// The answer of the approver, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The approver that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether the call was a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The files of decisions.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    directory: PrivateDirectory,
    open: Arc<Mutex<Option<File>>>,
}

impl Decisions {
    pub(super) fn new(directory: PrivateDirectory) -> Decisions {
        Decisions { directory, open: Arc::default() }
    }

    /// Opens the current file.
    fn open_current(&self) -> io::Result<File> {
        self.directory.open_file(CURRENT, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    fn error(&self, error: &io::Error) -> FsError {
        FsError::from_io(self.directory.path().join(CURRENT), "cannot be written", error)
    }
}

impl Journal {
    /// Stores a decision. Fails if it cannot be written.
    pub fn record_decision(&self, decided: DecisionRecord) -> Result<(), FsError> {
        let decided = DecisionRecord { process: std::process::id(), ..decided };
        let mut line = serde_json::to_string(&decided).unwrap_or_default();
        line.push('\n');
        if line.len() > MAX_LINE_BYTES {
            return Ok(());
        }
        let mut open = self.decisions.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |file: &File| file.metadata().is_ok_and(|found| found.len() >= MAX_BYTES);
        let file = match open.take() {
            Some(file) if !is_full(&file) => file,
            _ => self.open_decisions()?,
        };
        // A single write, so that lines of other processes are not mixed in.
        let written = open.insert(file).write_all(line.as_bytes());
        written.map_err(|error| self.decisions.error(&error))
    }

    /// Fails if a decision could not be stored now.
    pub fn check_decisions(&self) -> Result<(), FsError> {
        self.open_decisions().map(drop)
    }

    /// The stored decisions, newest first.
    pub fn decisions(&self) -> Result<Vec<DecisionRecord>, FsError> {
        let mut all = Vec::new();
        for name in [PREVIOUS, CURRENT] {
            let file = match self.directory.open_file(name, OFlags::RDONLY) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let path = self.directory().join(name);
                    return Err(FsError::from_io(path, "cannot be read", &error));
                }
            };
            // Several processes may each append a line to a file that is nearly full.
            let lines = BufReader::new(file.take(2 * MAX_BYTES)).split(b'\n');
            let lines = lines.map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice(&line).ok()));
        }
        all.reverse();
        Ok(all)
    }

    /// Opens the current file. If it is full, starts a new one.
    fn open_decisions(&self) -> Result<File, FsError> {
        let decisions = &self.decisions;
        self.prepare(&[])?;
        let file = decisions.open_current().map_err(|error| decisions.error(&error))?;
        if file.metadata().is_ok_and(|found| found.len() < MAX_BYTES) {
            return Ok(file);
        }
        let _lock =
            self.lock_file("lock", FlockOperation::NonBlockingLockExclusive, LOCK_TIMEOUT)?;
        // Another process may have replaced it already.
        let found = self.directory.stat(CURRENT);
        if found.is_ok_and(|found| u64::try_from(found.st_size).unwrap_or(0) >= MAX_BYTES) {
            self.directory.rename(CURRENT, PREVIOUS).map_err(|error| decisions.error(&error))?;
        }
        decisions.open_current().map_err(|error| decisions.error(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::*;

    #[test]
    fn decisions_are_bounded_and_listed_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        assert_eq!(journal.decisions().unwrap(), []);
        let decided = |time_ms| DecisionRecord {
            time_ms,
            process: std::process::id(),
            what: vec!["x".repeat(60_000)],
            answer: Some("once".into()),
            ..DecisionRecord::default()
        };
        for number in 1..=300 {
            journal.record_decision(decided(number)).unwrap();
        }
        // A line that another process did not complete.
        let path = directory.path().join("state/decisions");
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"time_ms\": 7, \"too");
        std::fs::write(&path, text).unwrap();
        let kept = journal.decisions().unwrap();
        assert_eq!(kept[0], decided(300));
        assert!(kept.windows(2).all(|pair| pair[0].time_ms == pair[1].time_ms + 1));
        assert!((70..=150).contains(&kept.len()), "{}", kept.len());
        journal
            .record_decision(DecisionRecord {
                what: vec!["x".repeat(MAX_LINE_BYTES)],
                ..decided(301)
            })
            .unwrap();
        assert_eq!(journal.decisions().unwrap().len(), kept.len(), "too long is not kept");
    }
}
