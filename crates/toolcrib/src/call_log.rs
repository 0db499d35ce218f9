//! Log of calls with their outcomes, for the operator.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolcrib_fs::{
    AuditEvent, AuditOutbox, AuditReport, CallRecord, CommandEndRecord, FsError, Journal,
    PrincipalRecord, RefusalRecord, Workspace, random_bytes, unix_ms,
};
use toolcrib_policy::{Access, Effect, Profile};

use crate::call_command::{CallCommand, CommandEnd};
use crate::call_recorder::{Outcome, Record};
use crate::error::{Error, ErrorKind};
use crate::journal_errors::{journal_error, require_journal};
use crate::log_state::LogState;
use crate::request::Principal;
use crate::sandbox_refusal_notes::DeniedAccess;

/// Limits of a logged call: accesses, characters of each, of a message and of each argument, bytes of all arguments.
const MAX_ACCESSES: usize = 20;
const MAX_ACCESS_CHARS: usize = 4_000;
const MAX_TEXT_CHARS: usize = 300;
const MAX_ARGUMENT_BYTES: usize = 2_000;

/// What a number, an array or an object counts for, besides its contents.
const VALUE_BYTES: usize = 8;

/// Characters of the name of a client.
const MAX_CLIENT_CHARS: usize = 100;

/// Denied accesses of a logged call.
const MAX_REFUSALS: usize = 20;

/// The text of [`Access::WriteAny`].
const ANY_FILE: &str = "any file of the workspace";

/// The log of calls, in the journal.
pub(crate) struct CallLog {
    journal: Option<Journal>,
    /// Begins the ids of the calls.
    server: String,
    /// The first root.
    workspace: String,
    profile: Profile,
    /// Whether calls are recorded in the audit log, too.
    audits: bool,
    audit_state: LogState,
    /// The commands of calls that have not ended.
    commands: Mutex<HashMap<u64, CallCommand>>,
}

impl CallLog {
    pub(crate) fn new(
        journal: Option<Journal>,
        server: Option<String>,
        workspace: &Workspace,
        profile: Profile,
        audits: bool,
    ) -> CallLog {
        let workspace = workspace.top().path().display().to_string();
        let server = server.unwrap_or_else(random_server_id);
        CallLog {
            journal,
            server,
            workspace,
            profile,
            audits,
            audit_state: LogState::default(),
            commands: Mutex::default(),
        }
    }

    /// The beginning of the ids of its calls.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// A call has started a command.
    pub(crate) fn command_started(&self, call: u64, command: CallCommand) {
        self.commands.lock().insert(call, command);
    }

    /// Logs a call that has ended. If that fails, so does the log of decisions, which reports it. Returns its command
    /// if that goes on.
    pub(crate) fn record(&self, record: &Record) -> Option<CallCommand> {
        let command = self.commands.lock().remove(&record.call);
        let is_running = command.as_ref().is_some_and(CallCommand::is_running);
        if let Some(journal) = &self.journal {
            let call = self.entry(record, (command.as_ref(), is_running));
            let _ = journal.record_call(&call);
            let client = record.origin.client.as_deref();
            let client = client.map(|client| cut(client, MAX_CLIENT_CHARS));
            let principal = record.origin.principal.as_deref();
            let principal = principal.map(|Principal { issuer, subject }| PrincipalRecord {
                issuer: issuer.clone(),
                subject: subject.clone(),
            });
            self.audit(|| AuditEvent::call(client, principal, call));
        }
        command.filter(|_| is_running)
    }

    /// Logs how the command of a call ended, after the call.
    pub(crate) fn record_command_end(&self, call: u64, end: &CommandEnd) {
        let Some(journal) = &self.journal else { return };
        let time_ms = unix_ms(end.time);
        let end = CommandEndRecord {
            call: format!("{}-{call}", self.server),
            time_ms,
            status: end.status.to_owned(),
            exit_code: end.exit_code,
            refusals: refusals(&end.denied, time_ms),
        };
        let _ = journal.record_command_end(&end);
        self.audit(|| AuditEvent::CommandEnd(end));
    }

    /// Appends to the audit log. If that fails, calls still work, and the next reply reports the failure.
    fn audit(&self, event: impl FnOnce() -> AuditEvent) {
        if let Some(journal) = self.journal.as_ref().filter(|_| self.audits) {
            let recorded = journal.record_audit(&self.workspace, &event());
            self.audit_state.note(recorded.map_err(|error| error.to_string()));
        }
    }

    /// Sentence about a failure that no reply has reported yet.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        let why = self.audit_state.take_trouble()?;
        Some(format!("[calls are not being recorded in the audit log: {why}]"))
    }

    /// Checks the audit log.
    pub(crate) fn verify_audit(&self, kept: Option<&str>) -> Result<AuditReport, Error> {
        let journal = require_journal(self.journal.as_ref())?;
        journal.verify_audit(&self.workspace, kept).map_err(|error| journal_error(&error))
    }

    /// The audit log, to send its records elsewhere. `None` if calls are not recorded in it.
    pub(crate) fn audit_outbox(&self) -> Option<AuditOutbox> {
        let journal = self.journal.as_ref().filter(|_| self.audits)?;
        Some(journal.audit_outbox(&self.workspace))
    }

    /// Passes the lines of the audit log to `visit`, oldest first.
    pub(crate) fn audit_lines(
        &self,
        visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let journal = require_journal(self.journal.as_ref())?;
        let read: Result<(), FsError> = journal.audit_lines(&self.workspace, visit);
        read.map_err(|error| journal_error(&error))
    }

    fn entry(
        &self,
        record: &Record,
        (command, is_running): (Option<&CallCommand>, bool),
    ) -> CallRecord {
        let (outcome, error) = match &record.outcome {
            Outcome::Failed { kind: ErrorKind::Denied, message } => {
                ("denied", Some((ErrorKind::Denied, message)))
            }
            Outcome::Failed { kind, message } => ("failed", Some((*kind, message))),
            _ if is_running => ("running", None),
            _ => ("done", None),
        };
        let ended = unix_ms(record.started + record.duration);
        let denied = command.map(CallCommand::denied_accesses).unwrap_or_default();
        let accesses = record.accesses.iter().take(MAX_ACCESSES);
        CallRecord {
            id: format!("{}-{}", self.server, record.call),
            time_ms: unix_ms(record.started),
            session: record.session,
            workspace: self.workspace.clone(),
            profile: Some(self.profile.name().to_owned()),
            tool: record.tool.clone(),
            description: record.description.as_deref().map(|text| cut(text, MAX_TEXT_CHARS)),
            accesses: accesses.map(access_texts).collect(),
            arguments: arguments(&record.arguments),
            ms: ms(record.duration),
            outcome: outcome.to_owned(),
            error_kind: error.map(|(kind, _)| kind.name().to_owned()),
            message: error.map(|(_, message)| cut(message, MAX_TEXT_CHARS)),
            dry_run: record.dry_run,
            decision: record.decision.as_ref().map(|(decision, _)| decision.name().to_owned()),
            rule: record.decision.as_ref().map(|(_, rule)| rule.clone()),
            answered: record.answered.map(|one| (one.answer.to_owned(), one.by.to_owned())),
            change: record.change,
            files_changed: record.files_changed,
            job: command.map(|command| command.id().to_owned()),
            refusals: refusals(&denied, ended),
        }
    }
}

/// The denied accesses of a command in the log, up to a number of them.
fn refusals(denied: &[DeniedAccess], time_ms: u64) -> Vec<RefusalRecord> {
    let refusal = |denied: &DeniedAccess| RefusalRecord {
        what: cut(&denied.what, MAX_TEXT_CHARS),
        setting: Some(denied.setting.to_owned()).filter(|setting| !setting.is_empty()),
        time_ms,
    };
    denied.iter().take(MAX_REFUSALS).map(refusal).collect()
}

/// An id for a runtime whose host gives none.
fn random_server_id() -> String {
    let random: [u8; 6] = random_bytes().unwrap_or_default();
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{random}", std::process::id())
}

/// The effect of an access, and what it is about.
fn access_texts(access: &Access) -> (String, String) {
    let (effect, text) = match access {
        Access::Read(path) | Access::Write(path) => {
            (access.effect().name(), path.to_string_lossy().into_owned())
        }
        Access::WriteAny => (Effect::Write.name(), ANY_FILE.to_owned()),
        Access::Connect(host, port) => ("connect", format!("{host}:{port}")),
        Access::Command(text) | Access::Reach(text) => (access.effect().name(), text.clone()),
    };
    (effect.to_owned(), cut(&text, MAX_ACCESS_CHARS))
}

/// The access that a log names. `None` if the log has not all of its text.
pub fn logged_access(effect: &str, text: &str) -> Option<Access> {
    if text.contains("[masked: ") || text.ends_with('…') {
        return None;
    }
    match effect {
        "read" => Some(Access::Read(text.into())),
        "write" if text == ANY_FILE => Some(Access::WriteAny),
        "write" => Some(Access::Write(text.into())),
        "command" => Some(Access::Command(text.to_owned())),
        "connect" => {
            let (host, port) = text.rsplit_once(':')?;
            Some(Access::Connect(host.to_owned(), port.parse().ok()?))
        }
        "reach" => Some(Access::Reach(text.to_owned())),
        _ => None,
    }
}

/// The short arguments, and the beginnings of others. A command is among the accesses.
fn arguments(all: &Value) -> Value {
    let Value::Object(fields) = all else { return Value::Null };
    let mut room = MAX_ARGUMENT_BYTES;
    let fields = fields.iter().filter(|(name, _)| *name != "command");
    let kept = first_fields(fields, &mut room);
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}

/// The first fields that fit, which reduce `room`.
fn first_fields<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
    room: &mut usize,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in fields {
        let value = take_room(room, name.len()).and_then(|()| beginning(value, room));
        let Some(value) = value else { break };
        kept.insert(name.clone(), value);
    }
    kept
}

/// The beginning of a value, in its own form. `None` if there is no room for it.
fn beginning(value: &Value, room: &mut usize) -> Option<Value> {
    let kept = match value {
        Value::String(text) => Value::String(cut(text, MAX_TEXT_CHARS)),
        Value::Array(items) => {
            take_room(room, VALUE_BYTES)?;
            let mut kept: Vec<Value> =
                items.iter().map_while(|item| beginning(item, room)).collect();
            if kept.len() < items.len() {
                kept.push("…".into());
            }
            return Some(kept.into());
        }
        Value::Object(fields) => {
            take_room(room, VALUE_BYTES)?;
            return Some(first_fields(fields.iter(), room).into());
        }
        other => other.clone(),
    };
    take_room(room, kept.as_str().map_or(VALUE_BYTES, str::len))?;
    Some(kept)
}

/// Takes bytes of the room. What does not fit ends it, so that nothing smaller follows.
fn take_room(room: &mut usize, bytes: usize) -> Option<()> {
    let rest = room.checked_sub(bytes);
    *room = rest.unwrap_or(0);
    rest.map(drop)
}

/// The beginning of a text. An ellipsis marks that it was cut.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_keep_their_form_and_are_bounded() {
        let edits = json!([{"old_string": "a", "new_string": "b", "replace_all": true}]);
        let files = json!({"files": [{"file_path": "x", "edits": edits}], "command": "make"});
        assert_eq!(arguments(&files), json!({"files": files["files"]}));
        let long = json!({"a": 1, "files": vec![json!({"text": "y".repeat(500)}); 1_000], "z": 2});
        let kept = arguments(&long);
        let items = kept["files"].as_array().unwrap();
        assert!(items.len() < 10 && kept.to_string().len() < 2 * MAX_ARGUMENT_BYTES, "{kept}");
        assert_eq!((items.last().unwrap(), &kept["a"]), (&json!("…"), &json!(1)));
        assert!(items[0]["text"].as_str().unwrap().ends_with('…'));
        let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
        assert!(arguments(&json!({"deep": deep})).is_object());
        assert_eq!(arguments(&json!([1])), Value::Null);
    }
}
