//! What was decided on calls: a line of JSON each, in two files of bounded size.
//!
//! Less than what changes are kept with: a line that a crash cut off is passed over, and nobody waits for
//! the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::{Journal, PATIENCE, make_private};
use crate::error::FsError;

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
    now: PathBuf,
    before: PathBuf,
    open: Arc<Mutex<Option<File>>>,
}

impl Decisions {
    pub(super) fn new(directory: &Path) -> Decisions {
        let (now, before) = (directory.join("decisions"), directory.join("decisions.before"));
        Decisions { now, before, open: Arc::default() }
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
        written.map_err(|error| self.decisions_error(&error))
    }

    /// The decisions that are still known, the newest first.
    pub fn decisions(&self) -> Result<Vec<Decided>, FsError> {
        let mut all = Vec::new();
        for path in [&self.decisions.before, &self.decisions.now] {
            let file = match File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(self.decisions_error(&error)),
            };
            let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice(&line).ok()));
        }
        all.reverse();
        Ok(all)
    }

    /// The file that lines are added to; if it is full, a new one.
    fn open_decisions(&self) -> Result<File, FsError> {
        make_private(&self.directory)?;
        let open = || {
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600).open(&self.decisions.now)
        };
        let file = open().map_err(|error| self.decisions_error(&error))?;
        if file.metadata().is_ok_and(|found| found.len() < MAX_BYTES) {
            return Ok(file);
        }
        let _lock = self.hold("lock", FlockOperation::NonBlockingLockExclusive, PATIENCE)?;
        // Somebody else may have been first.
        let found = std::fs::metadata(&self.decisions.now);
        if found.is_ok_and(|found| found.len() >= MAX_BYTES) {
            std::fs::rename(&self.decisions.now, &self.decisions.before)
                .map_err(|error| self.decisions_error(&error))?;
        }
        open().map_err(|error| self.decisions_error(&error))
    }

    fn decisions_error(&self, error: &io::Error) -> FsError {
        FsError::from_io(&self.decisions.now, "cannot keep a decision", error)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::*;

    #[test]
    fn decisions_are_kept_in_bounds_and_come_back_newest_first() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::new(directory.path().join("state"), Caps::default());
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
