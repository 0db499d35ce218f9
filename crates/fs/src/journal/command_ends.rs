//! The ends of commands that went on after their calls.

use serde::{Deserialize, Serialize};

use super::{Journal, RefusalRecord};
use crate::error::FsError;

/// How a command ended after its call. The format is stable: later versions may add fields, but never remove one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommandEndRecord {
    /// The id of the call.
    pub call: String,
    /// When it ended, in milliseconds since 1970.
    pub time_ms: u64,
    /// `completed`, `failed`, `killed` or `timeout`.
    pub status: String,
    /// The exit code of its shell. `None` if a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// All its denied accesses, also those before the end of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalRecord>,
}

impl Journal {
    /// Stores the end of a command. Fails if it cannot be written.
    pub fn record_command_end(&self, end: &CommandEndRecord) -> Result<(), FsError> {
        if !self.command_ends.append(self, end)? {
            let short = CommandEndRecord { refusals: Vec::new(), ..end.clone() };
            self.command_ends.append(self, &short)?;
        }
        Ok(())
    }

    /// The stored ends of commands, newest first.
    pub fn command_ends(&self) -> Result<Vec<CommandEndRecord>, FsError> {
        self.command_ends.read()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::*;

    #[test]
    fn ends_are_listed_newest_first_and_long_ones_are_shortened() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        let refusal =
            |chars: usize| RefusalRecord { what: "x".repeat(chars), ..Default::default() };
        let end = |call: &str, refusals: Vec<RefusalRecord>| CommandEndRecord {
            call: call.to_owned(),
            time_ms: 7,
            status: "failed".to_owned(),
            exit_code: Some(3),
            refusals,
        };
        journal.record_command_end(&end("a-1", vec![refusal(10)])).unwrap();
        journal.record_command_end(&end("a-2", vec![refusal(10_000_000)])).unwrap();
        let all = journal.command_ends().unwrap();
        assert_eq!(all, [end("a-2", Vec::new()), end("a-1", vec![refusal(10)])]);
    }
}
