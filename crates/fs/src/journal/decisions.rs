//! What was decided on calls: a line of JSON each, in two files of bounded size.
//!
//! Less than what changes are kept with: a line that a crash cut off is passed over, and nobody waits for
//! the disk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use super::{Journal, PATIENCE};
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;

const NOW: &str = "decisions";
const BEFORE: &str = "decisions.before";

/// When a file has so many bytes it becomes the older one, and the one before is gone.
const MAX_BYTES: u64 = 4 << 20;

/// A line has at most about so many; longer ones are not kept.
const MAX_LINE: usize = 64 << 10;

/// What was decided on a call. A promise to every later version: fields may come, none goes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Decided {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The process that was asked for the call; filled in when it is kept.
    pub process: u32,
    /// The session's number in that process.
    pub session: u64,
    /// The first directory of its workspace.
    pub workspace: String,
    /// The tool.
    pub tool: String,
    /// What the call would touch.
    pub what: Vec<String>,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// The rule that decided.
    pub rule: String,
    /// What was answered, where somebody was to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether nothing was to be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Where decisions are kept.
#[derive(Debug, Clone)]
pub(super) struct Decisions {
    directory: PrivateDirectory,
    open: Arc<Mutex<Option<File>>>,
}

impl Decisions {
    pub(super) fn new(directory: PrivateDirectory) -> Decisions {
        Decisions { directory, open: Arc::default() }
    }

    /// The file that lines are added to.
    fn open_now(&self) -> io::Result<File> {
        self.directory.open_file(NOW, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    fn error(&self, error: &io::Error) -> FsError {
        FsError::from_io(self.directory.path().join(NOW), "cannot be written", error)
    }
}

impl Journal {
    /// Keeps a decision.
    pub fn keep_decision(&self, decided: Decided) -> Result<(), FsError> {
        let decided = Decided { process: std::process::id(), ..decided };
        let mut line = serde_json::to_string(&decided).unwrap_or_default();
        line.push('\n');
        if line.len() > MAX_LINE {
            return Ok(());
        }
        let mut open = self.decisions.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |file: &File| file.metadata().is_ok_and(|found| found.len() >= MAX_BYTES);
        let file = match open.take() {
            Some(file) if !is_full(&file) => file,
            _ => self.open_decisions()?,
        };
        // One write: whoever else adds lines does so before or after it.
        let written = open.insert(file).write_all(line.as_bytes());
        written.map_err(|error| self.decisions.error(&error))
    }

    /// Whether a decision could be kept now.
    pub fn check_decisions(&self) -> Result<(), FsError> {
        self.open_decisions().map(drop)
    }

    /// The decisions that are still known, the newest first.
    pub fn decisions(&self) -> Result<Vec<Decided>, FsError> {
        let mut all = Vec::new();
        for name in [BEFORE, NOW] {
            let file = match self.directory.open_file(name, OFlags::RDONLY) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let path = self.directory().join(name);
                    return Err(FsError::from_io(path, "cannot be read", &error));
                }
            };
            // Several processes may each add a line to a file that is nearly full.
            let lines = BufReader::new(file.take(2 * MAX_BYTES)).split(b'\n');
            let lines = lines.map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice(&line).ok()));
        }
        all.reverse();
        Ok(all)
    }

    /// The file that lines are added to; if it is full, a new one.
    fn open_decisions(&self) -> Result<File, FsError> {
        let decisions = &self.decisions;
        self.directory.make(&[])?;
        let file = decisions.open_now().map_err(|error| decisions.error(&error))?;
        if file.metadata().is_ok_and(|found| found.len() < MAX_BYTES) {
            return Ok(file);
        }
        let _lock = self.hold("lock", FlockOperation::NonBlockingLockExclusive, PATIENCE)?;
        // Another process may have been first.
        let found = self.directory.stat(NOW);
        if found.is_ok_and(|found| u64::try_from(found.st_size).unwrap_or(0) >= MAX_BYTES) {
            self.directory.rename(NOW, BEFORE).map_err(|error| decisions.error(&error))?;
        }
        decisions.open_now().map_err(|error| decisions.error(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::*;

    #[test]
    fn decisions_are_kept_in_bounds_and_come_back_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        assert_eq!(journal.decisions().unwrap(), []);
        let decided = |time_ms| Decided {
            time_ms,
            process: std::process::id(),
            what: vec!["x".repeat(60_000)],
            answer: Some("once".into()),
            ..Decided::default()
        };
        for number in 1..=300 {
            journal.keep_decision(decided(number)).unwrap();
        }
        // What another process had cut off.
        let path = directory.path().join("state/decisions");
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"time_ms\": 7, \"too");
        std::fs::write(&path, text).unwrap();
        let kept = journal.decisions().unwrap();
        assert_eq!(kept[0], decided(300));
        assert!(kept.windows(2).all(|pair| pair[0].time_ms == pair[1].time_ms + 1));
        assert!((70..=150).contains(&kept.len()), "{}", kept.len());
        journal
            .keep_decision(Decided { what: vec!["x".repeat(MAX_LINE)], ..decided(301) })
            .unwrap();
        assert_eq!(journal.decisions().unwrap().len(), kept.len(), "too long is not kept");
    }
}
