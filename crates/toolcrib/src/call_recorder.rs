//! Reports a record of each call to the host.

use std::cell::LazyCell;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};
use toolcrib_policy::{Access, Effect};
use toolcrib_text::{Secrets, truncate_line};

use crate::approve::AnswerRecord;
use crate::call_command::{CallCommand, CommandEnd};
use crate::error::{Error, ErrorKind};
use crate::network::ConnectionEntry;
use crate::reply::Reply;
use crate::request::{Call, CallOrigin, Options};
use crate::session::Session;

/// The arguments that are shell commands.
const COMMAND_ARGUMENTS: [&str; 3] = ["command", "cmd", "script"];

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
    /// Number of the call in its runtime.
    pub call: u64,
    /// Id of the session.
    pub session: u64,
    /// Name of the tool. If no such tool exists, the name in the call.
    pub tool: String,
    /// Purpose of the call, in the agent's words.
    pub description: Option<String>,
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
    /// Who made the call.
    pub origin: CallOrigin,
    /// Start time.
    pub started: SystemTime,
    /// Duration of the call.
    pub duration: Duration,
    /// Result of the call.
    pub outcome: Outcome,
    /// Id of its change in the journal.
    pub change: Option<u64>,
    /// Number of files that it changed.
    pub files_changed: Option<u64>,
}

/// A call that was decoded and has not been decided on. Secrets are masked.
#[derive(Debug, Clone, PartialEq)]
pub struct BegunCall {
    /// Number of the call in its runtime.
    pub call: u64,
    /// Id of the session.
    pub session: u64,
    /// Name of the tool.
    pub tool: &'static str,
    /// Purpose of the call, in the agent's words.
    pub description: Option<String>,
    /// Accesses of the call, with resolved paths.
    pub accesses: Vec<Access>,
    /// Start time.
    pub started: SystemTime,
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
///
/// Its methods are called on the threads of calls and connections, so they should return soon.
pub trait Recorder: Send + Sync {
    /// Receives a call whose accesses are known. Calls that cannot be decoded have no such event.
    fn begun(&self, call: BegunCall) {
        let _ = call;
    }

    /// Receives the command that a call has started.
    fn command_started(&self, call: u64, command: CallCommand) {
        let _ = (call, command);
    }

    /// Receives the end of a command that went on after its call, whose record came before.
    fn command_ended(&self, call: u64, end: CommandEnd) {
        let _ = (call, end);
    }

    /// Receives a connection of a command that was opened, refused or closed.
    fn connection(&self, connection: &ConnectionEntry) {
        let _ = connection;
    }

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
        number: u64,
        session: &Session,
        call: &Call,
        secrets: &Secrets,
        options: Options<'_>,
    ) -> (Record, Instant) {
        let record = Record {
            call: number,
            session: session.id(),
            tool: call.tool.clone(),
            description: None,
            arguments: bounded(&call.args, secrets),
            accesses: Vec::new(),
            decision: None,
            answered: None,
            dry_run: options.dry_run,
            origin: options.origin.clone(),
            started: SystemTime::now(),
            duration: Duration::ZERO,
            outcome: Outcome::Running,
            change: None,
            files_changed: None,
        };
        (record, Instant::now())
    }

    /// Sets the purpose of the call, within the limit of a string.
    pub(crate) fn set_description(&mut self, description: Option<&str>, secrets: &Secrets) {
        self.description = description.map(|text| cut_string(text, secrets));
    }

    /// The call as it begins.
    pub(crate) fn begun(&self, tool: &'static str, secrets: &Secrets) -> BegunCall {
        let mut accesses = self.accesses.clone();
        mask_accesses(&mut accesses, || secrets);
        BegunCall {
            call: self.call,
            session: self.session,
            tool,
            description: self.description.clone(),
            accesses,
            started: self.started,
        }
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
        mask_accesses(&mut self.accesses, || &secrets);
        // A command that failed may have changed files.
        let metadata = match outcome {
            Ok(reply) => reply.metadata(),
            Err(error) => error.metadata(),
        };
        self.change = metadata.get("change").and_then(Value::as_u64);
        self.files_changed = self.change.map(|_| self.count_files(metadata));
        self.outcome = match outcome {
            Ok(reply) => Outcome::Done {
                output_chars: reply.output().chars().count() + reply.diff_text().chars().count(),
            },
            Err(error) => {
                // It may name the command.
                let message = secrets.mask_command(error.message()).into_owned();
                Outcome::Failed { kind: error.kind(), message }
            }
        };
    }

    /// Number of files in a change, by the metadata of its reply.
    fn count_files(&self, metadata: &Map<String, Value>) -> u64 {
        let of_command = metadata.get("files_changed").and_then(|files| files.get("count"));
        let counted = of_command.or_else(|| metadata.get("files_modified"));
        let written = || self.accesses.iter().filter(|access| access.effect() == Effect::Write);
        counted.and_then(Value::as_u64).unwrap_or_else(|| written().count().max(1) as u64)
    }
}

fn mask_accesses<'a>(accesses: &mut [Access], secrets: impl Fn() -> &'a Secrets) {
    for access in accesses {
        match access {
            Access::Command(text) | Access::Reach(text) => {
                *text = secrets().mask_command(text).into_owned();
            }
            Access::Read(path) | Access::Write(path) => {
                if let Some(text) = path.to_str() {
                    *path = secrets().mask(text).into_owned().into();
                }
            }
            Access::WriteAny | Access::Connect(..) => {}
        }
    }
}

/// Truncates the strings of the arguments, and all of them if they are still too long.
fn bounded(arguments: &Value, secrets: &Secrets) -> Value {
    let mut cut = cut_strings(arguments, secrets);
    for name in COMMAND_ARGUMENTS {
        if let Some(Value::String(command)) = cut.get_mut(name) {
            *command = secrets.mask_command(command).into_owned();
        }
    }
    let text = cut.to_string();
    if text.len() <= MAX_ARGUMENTS_BYTES {
        cut
    } else {
        truncate_line(&text, MAX_ARGUMENT_CHARS).into()
    }
}

fn cut_string(text: &str, secrets: &Secrets) -> String {
    let (first, rest) = text.split_at(text.floor_char_boundary(LOOKED_THROUGH));
    let masked = [&*secrets.mask(first), rest].concat();
    truncate_line(&masked, MAX_ARGUMENT_CHARS)
}

fn cut_strings(value: &Value, secrets: &Secrets) -> Value {
    match value {
        Value::String(text) => cut_string(text, secrets).into(),
        Value::Array(items) => items.iter().map(|item| cut_strings(item, secrets)).collect(),
        Value::Object(fields) => {
            let cut = |(key, value): (&String, &Value)| (key.clone(), cut_strings(value, secrets));
            fields.iter().map(cut).collect()
        }
        other => other.clone(),
    }
}
