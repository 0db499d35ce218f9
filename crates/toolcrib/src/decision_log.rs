//! Log of decisions on calls, for the operator.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolcrib_fs::{CallRecord, DecisionRecord, Journal, Workspace, now_ms, unix_ms};
use toolcrib_policy::{Access, Verdict};
use toolcrib_text::{Secrets, truncate_line, visible_name};

use crate::approve::AnswerRecord;
use crate::call_recorder::Record;
use crate::error::Error;
use crate::journal_errors::{journal_error, require_journal};
use crate::log_state::LogState;
use crate::phrases::age;
use crate::session::Session;

/// Limits of the log entry of a call: characters of each access, and number of accesses.
const MAX_CHARS: usize = 500;
const MAX_ACCESSES: usize = 20;

/// The tool of `toolcrib undo`.
const OPERATOR_TOOL: &str = "Undo";

/// The rule that allows a command of the operator.
pub(crate) const OPERATOR_RULE: &str = "operator";

/// A logged decision on a call in this workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionEntry {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Name of the tool.
    pub tool: String,
    /// Accesses of the call. Secrets are masked.
    pub what: Vec<String>,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// Name of the rule.
    pub rule: String,
    /// Answer and name of the approver, if one was asked.
    pub answered: Option<(String, String)>,
    /// Whether the call was a dry run.
    pub dry_run: bool,
}

impl DecisionEntry {
    /// Age of the decision, in words.
    pub fn age(&self) -> String {
        age(self.time_ms)
    }
}

/// The log of decisions, in the journal.
pub(crate) struct DecisionLog {
    journal: Option<Journal>,
    /// The first root, which names the workspace in the log.
    workspace: String,
    state: LogState,
}

impl DecisionLog {
    pub(crate) fn new(journal: Option<Journal>, workspace: &Workspace) -> DecisionLog {
        let workspace = workspace.top().path().display().to_string();
        DecisionLog { journal, workspace, state: LogState::default() }
    }

    /// The decisions in this workspace, newest first.
    pub(crate) fn entries(&self) -> Result<Vec<DecisionEntry>, Error> {
        let journal = require_journal(self.journal.as_ref())?;
        let all = journal.decisions().map_err(|error| journal_error(&error))?;
        let entry = |decided: DecisionRecord| DecisionEntry {
            time_ms: decided.time_ms,
            tool: decided.tool,
            what: decided.what,
            decision: decided.decision,
            rule: decided.rule,
            answered: decided.answer.zip(decided.by),
            dry_run: decided.dry_run,
        };
        // 0.1.0 stored the directory with a slash at its end, which a comparison of paths ignores.
        let here = Path::new(&self.workspace);
        let is_here = |decided: &DecisionRecord| Path::new(&decided.workspace) == here;
        Ok(all.into_iter().filter(is_here).map(entry).collect())
    }

    /// The innermost logged workspace around this one. `None` if this one is logged, or none around it.
    pub(crate) fn enclosing_workspace(&self) -> Result<Option<PathBuf>, Error> {
        let journal = require_journal(self.journal.as_ref())?;
        let all = journal.decisions().map_err(|error| journal_error(&error))?;
        // The operator may undo a part of a change in any directory, which makes no workspace of it.
        let logged = all.iter().filter(|decided| decided.tool != OPERATOR_TOOL);
        let logged: BTreeSet<&Path> = logged.map(|decided| Path::new(&decided.workspace)).collect();
        let here = Path::new(&self.workspace);
        let nearest = here.ancestors().find(|above| logged.contains(above));
        let Some(enclosing) = nearest.filter(|nearest| *nearest != here) else { return Ok(None) };
        // A call that failed before the decision is in the log of calls only.
        let is_here =
            |call: &CallRecord| call.tool != OPERATOR_TOOL && Path::new(&call.workspace) == here;
        let called = journal.calls(None, 1, is_here).map_err(|error| journal_error(&error))?;
        Ok(called.calls.is_empty().then(|| enclosing.to_owned()))
    }

    /// Checks that decisions can be logged now. Succeeds without a journal.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let checked = self.journal.as_ref().map_or(Ok(()), |journal| journal.check_decisions());
        checked.map_err(|error| journal_error(&error))
    }

    /// Logs the decision on a call. If logging fails, calls still work, and the next reply reports the failure.
    pub(crate) fn record(&self, session: &Session, secrets: &Secrets, record: &Record) {
        let decision = record.decision.as_ref();
        let Some((journal, (decision, rule))) = self.journal.as_ref().zip(decision) else {
            return;
        };
        let accesses = record.accesses.iter().take(MAX_ACCESSES);
        let mut what: Vec<String> = accesses.map(|access| shown(access, secrets)).collect();
        match record.accesses.len().saturating_sub(MAX_ACCESSES) {
            0 => {}
            more => what.push(format!("and {more} more")),
        }
        let decided = DecisionRecord {
            time_ms: unix_ms(record.started),
            process: 0,
            session: session.id(),
            workspace: self.workspace.clone(),
            tool: record.tool.clone(),
            what,
            decision: decision.name().to_owned(),
            rule: rule.clone(),
            answer: record.answered.map(|answered| answered.answer.to_owned()),
            by: record.answered.map(|answered| answered.by.to_owned()),
            dry_run: record.dry_run,
        };
        self.state.note(journal.record_decision(decided).map_err(|error| error.to_string()));
    }

    /// Logs the answer to a question that came while a command ran.
    pub(crate) fn record_answer(
        &self,
        (session, secrets): (&Session, &Secrets),
        tool: &str,
        access: &Access,
        verdict: &Verdict,
        answered: AnswerRecord,
    ) {
        let Some(journal) = &self.journal else { return };
        let decided = DecisionRecord {
            time_ms: now_ms(),
            process: 0,
            session: session.id(),
            workspace: self.workspace.clone(),
            tool: tool.to_owned(),
            what: vec![shown(access, secrets)],
            decision: verdict.decision.name().to_owned(),
            rule: verdict.rule.clone(),
            answer: Some(answered.answer.to_owned()),
            by: Some(answered.by.to_owned()),
            dry_run: false,
        };
        self.state.note(journal.record_decision(decided).map_err(|error| error.to_string()));
    }

    /// Sentence about a failure that no reply has reported yet.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        let why = self.state.take_trouble()?;
        Some(format!("[decisions on calls are not being logged: {why}]"))
    }
}

/// An access with secrets masked.
fn shown(access: &Access, secrets: &Secrets) -> String {
    let words = truncate_line(&access.to_string(), 2 * MAX_CHARS);
    let masked = match access {
        Access::Command(_) | Access::Reach(_) => secrets.mask_command(&words),
        _ => secrets.mask(&words),
    };
    truncate_line(&visible_name(masked.as_bytes()), MAX_CHARS)
}
