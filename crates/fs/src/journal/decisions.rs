//! The decisions about calls.

use serde::{Deserialize, Serialize};

use super::Journal;
use crate::error::FsError;

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

impl Journal {
    /// Stores a decision. Fails if it cannot be written.
    pub fn record_decision(&self, decided: DecisionRecord) -> Result<(), FsError> {
        let decided = DecisionRecord { process: std::process::id(), ..decided };
        self.decisions.append(self, &decided).map(drop)
    }

    /// Fails if a decision could not be stored now.
    pub fn check_decisions(&self) -> Result<(), FsError> {
        self.decisions.check(self)
    }

    /// The stored decisions, newest first.
    pub fn decisions(&self) -> Result<Vec<DecisionRecord>, FsError> {
        self.decisions.read()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::super::bounded_log::MAX_LINE_BYTES;
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
