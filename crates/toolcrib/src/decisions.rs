//! What was decided on calls, kept for the operator.

use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use toolcrib_fs::DecisionRecord;
use toolcrib_policy::Access;
use toolcrib_text::{Secrets, truncate_line, visible_name};

use crate::call_record::Record;
use crate::error::Error;
use crate::history::{age, journal_error};
use crate::runtime::Runtime;
use crate::session::Session;

/// What is kept of one thing that a call touches, and of how many.
const MAX_CHARS: usize = 500;
const MAX_ACCESSES: usize = 20;

/// A decision on a call that was made in this workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionEntry {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The tool.
    pub tool: String,
    /// What the call would touch; what looks secret is masked.
    pub what: Vec<String>,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// The rule that decided.
    pub rule: String,
    /// What was answered and by whom, where somebody was to be asked.
    pub answered: Option<(String, String)>,
    /// Whether nothing was to be changed.
    pub dry_run: bool,
}

impl DecisionEntry {
    /// How long ago it was, in words.
    pub fn age(&self) -> String {
        age(self.time_ms)
    }
}

/// Whether decisions can be kept.
#[derive(Debug, Default)]
pub(crate) struct DecisionKeeping(Mutex<Keeping>);

#[derive(Debug, Default)]
enum Keeping {
    /// As far as is known.
    #[default]
    Works,
    /// It does not, for this reason, and no reply has said so yet.
    Fails(String),
    /// It does not, and a reply has said so.
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

    /// Why decisions cannot be kept, for the first reply that can say so.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        let mut keeping = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Keeping::Fails(why) = &*keeping else { return None };
        let trouble = format!("[decisions on calls are not being logged: {why}]");
        *keeping = Keeping::FailsAndTold;
        Some(trouble)
    }
}

impl Runtime {
    /// What was decided in this workspace and is still known, the newest first.
    pub fn decisions(&self) -> Result<Vec<DecisionEntry>, Error> {
        let all = self.journal_there()?.decisions().map_err(|error| journal_error(&error))?;
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
        Ok(all.into_iter().filter(|decided| decided.workspace == here).map(entry).collect())
    }

    /// Whether decisions on calls can be logged now.
    pub fn check_decisions(&self) -> Result<(), Error> {
        let checked = self.journal().map_or(Ok(()), |journal| journal.check_decisions());
        checked.map_err(|error| journal_error(&error))
    }

    /// Keeps what was decided on a call. Where that cannot be kept, calls go on, and the next reply says so.
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
