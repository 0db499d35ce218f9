//! A record of each call: what the journal keeps.

use std::cell::LazyCell;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use toolcrib_policy::Access;
use toolcrib_text::{Secrets, truncate_line};

use crate::approve::Answered;
use crate::call::Call;
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::session::Session;

/// Characters kept of each string in the arguments: enough to know a call by, not to hold a file.
const MAX_ARGUMENT_CHARS: usize = 2_000;

/// Bytes of each string that are looked through for secrets: more than are kept.
const LOOKED_THROUGH: usize = 16 << 10;

/// Bytes of the arguments as a whole.
const MAX_ARGUMENTS_BYTES: usize = 64 << 10;

/// What happened in one call. What looks secret is masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The session it was made in.
    pub session: u64,
    /// The tool's name; as it was called, if there is no such tool.
    pub tool: String,
    /// The arguments; long strings are cut and say so.
    pub arguments: Value,
    /// What it touched, on real paths.
    pub accesses: Vec<Access>,
    /// `allow`, `ask` or `deny`, with the rule that said so; nothing, if the call did not get there.
    pub decision: Option<(toolcrib_policy::Decision, String)>,
    /// What was answered, where somebody was to be asked.
    pub answered: Option<Answered>,
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// When it began.
    pub started: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is not over yet.
    Running,
    /// It did what was asked, and said this many characters.
    Done {
        /// Characters of the reply.
        output_chars: usize,
    },
    /// It did not.
    Failed {
        /// The error's kind.
        kind: ErrorKind,
        /// The error's sentence.
        message: String,
    },
}

/// Somebody who keeps records.
pub trait Recorder: Send + Sync {
    /// Takes the record of a call that is over.
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
        // Most calls say nothing here that could be secret.
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

/// Arguments as a record keeps them: strings cut, and the whole cut where it is still too much.
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
