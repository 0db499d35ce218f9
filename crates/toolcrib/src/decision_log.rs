//! Log of decisions on calls, for the operator.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use toolcrib_fs::DecisionRecord;
use toolcrib_policy::Access;
use toolcrib_text::{Secrets, truncate_line, visible_name};

use crate::call_recorder::Record;
use crate::error::Error;
use crate::history::{age, journal_error};
use crate::runtime::Runtime;
use crate::session::Session;

/// Limits of the log entry of a call: characters of each access, and number of accesses.
const MAX_CHARS: usize = 500;
const MAX_ACCESSES: usize = 20;

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

/// Whether the log of decisions works.
#[derive(Debug, Default)]
pub(crate) struct DecisionKeeping(Mutex<Keeping>);

#[derive(Debug, Default)]
enum Keeping {
    #[default]
    Works,
    /// The reason; no reply has reported it yet.
    Fails(String),
    /// A reply has reported the failure.
    FailsAndTold,
}

impl DecisionKeeping {
    fn set(&self, outcome: Result<(), String>) {
        let mut keeping = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (outcome, &*keeping) {
            (Ok(()), _) => *keeping = Keeping::Works,
            (Err(why), Keeping::Works) => *keeping = Keeping::Fails(why),
            (Err(_), _) => {}
        }
    }

    /// Reason of a failure that no reply has reported yet.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        let mut keeping = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Keeping::Fails(why) = &*keeping else { return None };
        let trouble = format!("[decisions on calls are not being logged: {why}]");
        *keeping = Keeping::FailsAndTold;
        Some(trouble)
    }
}

impl Runtime {
    /// Returns the logged decisions in this workspace, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the runtime has no journal or the log cannot be read.
    pub fn decisions(&self) -> Result<Vec<DecisionEntry>, Error> {
        let all = self.require_journal()?.decisions().map_err(|error| journal_error(&error))?;
        let here = self.workspace().top().path().display().to_string();
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
        let is_here = |decided: &DecisionRecord| Path::new(&decided.workspace) == Path::new(&here);
        Ok(all.into_iter().filter(is_here).map(entry).collect())
    }

    /// Checks that decisions can be logged now. Succeeds if the runtime has no journal.
    pub fn check_decisions(&self) -> Result<(), Error> {
        let checked = self.journal().map_or(Ok(()), |journal| journal.check_decisions());
        checked.map_err(|error| journal_error(&error))
    }

    /// Logs the decision on a call. If logging fails, calls still work, and the next reply reports the failure.
    pub(crate) fn record_decision(&self, session: &Session, secrets: &Secrets, record: &Record) {
        let Some((journal, (decision, rule))) = self.journal().zip(record.decision.as_ref()) else {
            return;
        };
        let shown = |access: &Access| {
            let words = truncate_line(&access.to_string(), 2 * MAX_CHARS);
            truncate_line(&visible_name(secrets.mask(&words).as_bytes()), MAX_CHARS)
        };
        let mut what: Vec<String> = record.accesses.iter().take(MAX_ACCESSES).map(shown).collect();
        match record.accesses.len().saturating_sub(MAX_ACCESSES) {
            0 => {}
            more => what.push(format!("and {more} more")),
        }
        let since = record.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let decided = DecisionRecord {
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            process: 0,
            session: session.id(),
            workspace: self.workspace().top().path().display().to_string(),
            tool: record.tool.clone(),
            what,
            decision: decision.name().to_owned(),
            rule: rule.clone(),
            answer: record.answered.map(|answered| answered.answer.to_owned()),
            by: record.answered.map(|answered| answered.by.to_owned()),
            dry_run: record.dry_run,
        };
        let kept = journal.record_decision(decided);
        self.decision_keeping().set(kept.map_err(|error| error.to_string()));
    }
}
