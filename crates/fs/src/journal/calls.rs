//! The calls that have ended, with their outcomes.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Journal;
use super::bounded_log::Position;
use crate::error::FsError;

/// The part of the log that one search reads. A search that finds little goes on from its cursor.
const MAX_SEARCHED_BYTES: u64 = 16 << 20;

/// Limits of a call that is too long for a line: accesses, and characters of each text.
const MAX_SHORT_ACCESSES: usize = 5;
const MAX_SHORT_CHARS: usize = 1_000;

/// A call that has ended. The format is stable: later versions may add fields, but never remove one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallRecord {
    /// The id, which is unique over processes and time.
    pub id: String,
    /// When it began, in milliseconds since 1970.
    pub time_ms: u64,
    /// The number of the session in its process.
    pub session: u64,
    /// The first directory of its workspace.
    pub workspace: String,
    /// The profile of its policy. Earlier versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The tool.
    pub tool: String,
    /// The purpose, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The accesses: the effect, and what it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<(String, String)>,
    /// The arguments, with long ones truncated.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// `done`, `failed`, `denied` or `running`, if its command went on.
    pub outcome: String,
    /// The kind of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<String>,
    /// The message of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it was a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// `allow`, `ask` or `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The answer of the approver, and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<(String, String)>,
    /// The number of the change that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// The number of files that it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<u64>,
    /// The id of its command in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Denied accesses of its command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalRecord>,
}

impl CallRecord {
    /// The call without its longest parts, so that it fits a line of the log whatever its paths are.
    pub(super) fn shortened(&self) -> CallRecord {
        let cut = |text: &str| match text.char_indices().nth(MAX_SHORT_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        let accesses = self.accesses.iter().take(MAX_SHORT_ACCESSES);
        CallRecord {
            workspace: cut(&self.workspace),
            description: None,
            accesses: accesses.map(|(effect, text)| (effect.clone(), cut(text))).collect(),
            arguments: Value::Null,
            message: self.message.as_deref().map(cut),
            rule: self.rule.as_deref().map(cut),
            refusals: Vec::new(),
            ..self.clone()
        }
    }
}

/// An access of a command that the sandbox denied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// The access, such as `write /etc/passwd`.
    pub what: String,
    /// The setting that would allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
}

/// A part of the log of calls, newest first.
#[derive(Debug, Default)]
pub struct CallPage {
    /// The calls.
    pub calls: Vec<CallRecord>,
    /// Where the next part begins. `None` if there is none.
    pub next: Option<String>,
}

impl Journal {
    /// Stores a call. Fails if it cannot be written.
    pub fn record_call(&self, call: &CallRecord) -> Result<(), FsError> {
        if !self.calls.append(self, call)? {
            self.calls.append(self, &call.shortened())?;
        }
        Ok(())
    }

    /// The calls that are wanted, newest first, up to a number of them, from a cursor back. One call reads a bounded
    /// part of the log, so the page may have fewer calls than that and still a cursor.
    pub fn calls(
        &self,
        before: Option<&str>,
        limit: usize,
        mut is_wanted: impl FnMut(&CallRecord) -> bool,
    ) -> Result<CallPage, FsError> {
        let from = match before.map(Position::parse) {
            Some(None) => return Ok(CallPage::default()),
            from => from.flatten(),
        };
        let mut calls = Vec::new();
        let next = self.calls.read_back(from, MAX_SEARCHED_BYTES, |line| {
            if calls.len() >= limit {
                return ControlFlow::Break(());
            }
            let parsed: Option<CallRecord> = serde_json::from_slice(line).ok();
            calls.extend(parsed.filter(|call| is_wanted(call)));
            ControlFlow::Continue(())
        })?;
        Ok(CallPage { calls, next: next.map(|position| position.to_string()) })
    }

    /// The call with this id.
    pub fn call(&self, id: &str) -> Result<Option<CallRecord>, FsError> {
        // Parsing all lines would take ten times as long.
        let mark = format!("{{\"id\":{}", serde_json::to_string(&id).unwrap_or_default());
        let mut found = None;
        self.calls.read_back(None, u64::MAX, |line| {
            let names_it = line.starts_with(mark.as_bytes());
            let parsed = || serde_json::from_slice::<CallRecord>(line).ok();
            found = names_it.then(parsed).flatten().filter(|call| call.id == id);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// The number of stored calls.
    pub fn count_calls(&self) -> Result<u64, FsError> {
        let mut count = 0;
        self.calls.read_back(None, u64::MAX, |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Caps;
    use super::*;

    fn journal() -> (tempfile::TempDir, Journal) {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path().join("state"), Caps::default()).unwrap();
        (directory, journal)
    }

    fn call(number: u64) -> CallRecord {
        CallRecord {
            id: format!("1-a-{number}"),
            time_ms: number,
            tool: if number.is_multiple_of(10) { "Bash" } else { "Read" }.into(),
            ..CallRecord::default()
        }
    }

    #[test]
    fn a_call_with_long_paths_is_logged_shortened() {
        let (_directory, journal) = journal();
        let accesses = vec![("write".to_owned(), "\u{1}".repeat(4_000)); 20];
        journal.record_call(&CallRecord { accesses, ..call(1) }).unwrap();
        let logged = journal.calls(None, 5, |_| true).unwrap().calls;
        assert_eq!(logged.len(), 1);
        assert_eq!(
            (logged[0].id.as_str(), logged[0].accesses.len()),
            ("1-a-1", MAX_SHORT_ACCESSES)
        );
        assert!(logged[0].accesses[0].1.ends_with('…'));
    }

    #[test]
    fn calls_are_paged_newest_first_while_others_are_added() {
        let (_directory, journal) = journal();
        assert!(journal.calls(None, 5, |_| true).unwrap().calls.is_empty());
        for number in 1..=25 {
            journal.record_call(&call(number)).unwrap();
        }
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = journal.calls(before.as_deref(), 7, |_| true).unwrap();
            assert!(page.calls.len() <= 7);
            seen.extend(page.calls.iter().map(|call| call.time_ms));
            journal.record_call(&call(99)).unwrap();
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, (1..=25).rev().collect::<Vec<_>>());
        assert_eq!(journal.call("1-a-3").unwrap(), Some(call(3)));
        assert_eq!(journal.call("1-a-").unwrap(), None);
        let found = journal.calls(None, 9, |call| call.tool == "Bash").unwrap().calls;
        assert_eq!(found.len(), 2);
        assert!(journal.calls(Some("nonsense"), 9, |_| true).unwrap().calls.is_empty());
    }

    #[test]
    fn a_cursor_stays_valid_when_the_log_is_replaced() {
        let (_directory, journal) = journal();
        let long = |number| CallRecord { message: Some("x".repeat(60_000)), ..call(number) };
        for number in 1..=500 {
            journal.record_call(&long(number)).unwrap();
        }
        let page = journal.calls(None, 10, |_| true).unwrap();
        for number in 501..=700 {
            journal.record_call(&long(number)).unwrap();
        }
        let next = journal.calls(page.next.as_deref(), 10, |_| true).unwrap();
        assert_eq!(next.calls[0].time_ms, 490);
        let count = journal.count_calls().unwrap();
        assert!((500..=700).contains(&count), "{count}");
    }

    /// A line that a crash cut off, and one that is not JSON.
    #[test]
    fn damaged_lines_are_skipped() {
        let (directory, journal) = journal();
        journal.record_call(&call(1)).unwrap();
        let path = directory.path().join("state/calls");
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"id\": \"1-a-7\", \"time\n\xff\n{}\n");
        std::fs::write(&path, text).unwrap();
        journal.record_call(&call(2)).unwrap();
        let times = journal.calls(None, 9, |_| true).unwrap().calls;
        assert_eq!(times.iter().map(|call| call.time_ms).collect::<Vec<_>>(), [2, 1]);
    }
}
