//! Logged calls as the policy sees them, to decide on them again.

use toolcrib::{Access, CallRecord, DecisionRecord, OperatorLogs, logged_access, now_ms};

use crate::api_error::ApiError;

/// The calls that a preview decides on again.
pub(crate) const PREVIEWED: PreviewedCalls = PreviewedCalls { days: 30 };

/// More calls would take longer than a person waits.
const MAX_CALLS: usize = 20_000;

/// Records of decisions cut longer texts.
const CUT_CHARS: usize = 490;

/// Calls of the last days.
pub(crate) struct PreviewedCalls {
    pub(crate) days: u64,
}

/// A call, as far as the policy decides on it.
pub(crate) struct LoggedCall {
    pub(crate) time_ms: u64,
    pub(crate) tool: String,
    pub(crate) workspace: String,
    /// The profile of its agent, if the log has it.
    pub(crate) profile: Option<String>,
    /// What it accessed, as text.
    pub(crate) what: String,
    /// `None` if the log has not all of them as they were.
    pub(crate) accesses: Option<Vec<Access>>,
}

impl PreviewedCalls {
    /// The time of the oldest call, in milliseconds since 1970.
    pub(crate) fn since(&self) -> u64 {
        now_ms().saturating_sub(self.days.saturating_mul(24 * 60 * 60 * 1_000))
    }

    /// The calls, newest first. Before the log of calls, the log of decisions has them, less exactly.
    pub(crate) fn read(&self, logs: &OperatorLogs) -> Result<Vec<LoggedCall>, ApiError> {
        let since = self.since();
        let (mut all, mut oldest, mut before) = (Vec::new(), u64::MAX, None);
        loop {
            let is_recent = |call: &CallRecord| call.time_ms >= since && call.decision.is_some();
            let page = logs.calls(before.as_deref(), MAX_CALLS, is_recent)?;
            oldest = page.calls.last().map_or(oldest, |call| call.time_ms.min(oldest));
            all.extend(page.calls.iter().map(LoggedCall::of_call));
            before = page.next;
            if before.is_none() || all.len() >= MAX_CALLS {
                break;
            }
        }
        let decisions = logs.decisions()?;
        let older = decisions.iter().filter(|one| (since..oldest).contains(&one.time_ms));
        all.extend(older.map(LoggedCall::of_decision));
        all.truncate(MAX_CALLS);
        Ok(all)
    }
}

impl LoggedCall {
    fn of_call(call: &CallRecord) -> LoggedCall {
        let access = |(effect, text): &(String, String)| logged_access(effect, text);
        let what: Vec<&str> = call.accesses.iter().map(|(_, text)| text.as_str()).collect();
        LoggedCall {
            time_ms: call.time_ms,
            tool: call.tool.clone(),
            workspace: call.workspace.clone(),
            profile: call.profile.clone(),
            what: what.join(", "),
            accesses: call.accesses.iter().map(access).collect(),
        }
    }

    fn of_decision(decided: &DecisionRecord) -> LoggedCall {
        let access = |what: &String| {
            let (effect, text) = what.split_once(' ')?;
            // Escaped, cut or incomplete.
            if text.contains('\\') || text.chars().count() > CUT_CHARS {
                return None;
            }
            match effect {
                "run" => logged_access("command", text),
                "connect" => logged_access("connect", text.strip_prefix("to ")?),
                "write" if text == "files of the workspace" => Some(Access::WriteAny),
                "read" | "write" => logged_access(effect, text),
                _ => None,
            }
        };
        LoggedCall {
            time_ms: decided.time_ms,
            tool: decided.tool.clone(),
            workspace: decided.workspace.clone(),
            profile: None,
            what: decided.what.join(", "),
            accesses: decided.what.iter().map(access).collect(),
        }
    }
}
