//! Reports a record of each call to the host.

use std::cell::LazyCell;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use toolcrib_policy::Access;
use toolcrib_text::{Secrets, truncate_line};

use crate::approve::AnswerRecord;
use crate::call::Call;
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::session::Session;

/// Characters kept of each string in the arguments: enough to know a call by, not to hold a file.
const MAX_ARGUMENT_CHARS: usize = 2_000;

/// Bytes of each string that are searched for secrets: more than are kept.
const LOOKED_THROUGH: usize = 16 << 10;

/// Limit for all arguments together.
const MAX_ARGUMENTS_BYTES: usize = 64 << 10;

/// Record of one call. Secrets are masked.
///
/// See [`crate::RuntimeBuilder::recorder`].
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Id of the session.
    pub session: u64,
    /// Name of the tool. If no such tool exists, the name in the call.
    pub tool: String,
    /// Arguments. Long strings are truncated and marked.
    pub arguments: Value,
    /// Accesses of the call, with resolved paths.
    pub accesses: Vec<Access>,
    /// Decision and the rule that made it. `None` if the call failed before the decision.
    pub decision: Option<(toolcrib_policy::Decision, String)>,
    /// Answer of the approver, if one was asked.
    pub answered: Option<AnswerRecord>,
    /// Whether the call was a dry run.
    pub dry_run: bool,
    /// Start time.
    pub started: SystemTime,
    /// Duration of the call.
    pub duration: Duration,
    /// Result of the call.
    pub outcome: Outcome,
}

/// Result of a recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The call has not ended yet.
    Running,
    /// The call succeeded.
    Done {
        /// Length of the reply in characters.
        output_chars: usize,
    },
    /// The call failed.
    Failed {
        /// Kind of the error.
        kind: ErrorKind,
        /// Message of the error.
        message: String,
    },
}

/// Receives the record of each call. A closure is a recorder.
pub trait Recorder: Send + Sync {
    /// Receives the record of a call that has ended. Called on the thread of the call.
    fn record(&self, record: Record);
}

impl<F: Fn(Record) + Send + Sync> Recorder for F {
    fn record(&self, record: Record) {
        self(record);
    }
}

impl Record {
    pub(crate) fn begin(
        session: &Session,
        call: &Call,
        secrets: &Secrets,
        dry_run: bool,
    ) -> (Record, Instant) {
        let record = Record {
            session: session.id(),
            tool: call.tool.clone(),
            arguments: bounded(&call.args, secrets),
            accesses: Vec::new(),
            decision: None,
            answered: None,
            dry_run,
            started: SystemTime::now(),
            duration: Duration::ZERO,
            outcome: Outcome::Running,
        };
        (record, Instant::now())
    }

    pub(crate) fn end(
        &mut self,
        began: Instant,
        secrets: impl FnOnce() -> Secrets,
        outcome: &Result<Reply, Error>,
    ) {
        self.duration = began.elapsed();
        // Computed on demand: most records need no masking here.
        let secrets = LazyCell::new(secrets);
        for access in &mut self.accesses {
            if let Access::Command(text) | Access::Reach(text) = access {
                *text = secrets.mask(text).into_owned();
            }
        }
        self.outcome = match outcome {
            Ok(reply) => Outcome::Done {
                output_chars: reply.output().chars().count() + reply.diff_text().chars().count(),
            },
            Err(error) => {
                let message = secrets.mask(error.message()).into_owned();
                Outcome::Failed { kind: error.kind(), message }
            }
        };
    }
}

/// Truncates the strings of the arguments, and all of them if they are still too long.
fn bounded(arguments: &Value, secrets: &Secrets) -> Value {
    let cut = cut_strings(arguments, secrets);
    let text = cut.to_string();
    if text.len() <= MAX_ARGUMENTS_BYTES {
        cut
    } else {
        truncate_line(&text, MAX_ARGUMENT_CHARS).into()
    }
}

fn cut_strings(value: &Value, secrets: &Secrets) -> Value {
    match value {
        Value::String(text) => {
            let (first, rest) = text.split_at(text.floor_char_boundary(LOOKED_THROUGH));
            let masked = [&*secrets.mask(first), rest].concat();
            truncate_line(&masked, MAX_ARGUMENT_CHARS).into()
        }
        Value::Array(items) => items.iter().map(|item| cut_strings(item, secrets)).collect(),
        Value::Object(fields) => {
            let cut = |(key, value): (&String, &Value)| (key.clone(), cut_strings(value, secrets));
            fields.iter().map(cut).collect()
        }
        other => other.clone(),
    }
}
