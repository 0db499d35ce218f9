//! Calls as the runtime reports them, and their form in the protocol. Most calls are never looked at, so the form is
//! made when a client asks for it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib::{
    Access as RuntimeAccess, BegunCall, CommandEnd, ConnectionEntry, DeniedAccess, ErrorKind,
    Outcome as Ended, Record, call_title, unix_ms,
};

use crate::bounded_text::Cut;
use crate::protocol::{
    Access, Answered, Call, EndedCommand, Event, Outcome, Refusal, RunningCall, Server,
};

/// Limits of one call: characters of an access, number of accesses.
const MAX_ACCESS_CHARS: usize = 16 << 10;
const MAX_ACCESSES: usize = 200;

/// Refused connections that are listed for a call.
const MAX_REFUSED: usize = 50;

/// Fixed size of a kept call, for the limit of kept events.
const BASE_BYTES: usize = 300;

/// An event that a client may ask for.
#[derive(Debug)]
pub(crate) enum ObservedEvent {
    Begun(Arc<ObservedCall>),
    Ended(Box<EndedCall>),
    /// The client has sent its name, which the description of the server has.
    ClientNamed,
    /// An event in the form of the protocol.
    Other(Box<Event>),
}

impl ObservedEvent {
    /// About its size in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ObservedEvent::Begun(call) => call.bytes(),
            ObservedEvent::Ended(call) => call.bytes(),
            ObservedEvent::ClientNamed => BASE_BYTES,
            ObservedEvent::Other(event) => event_bytes(event),
        }
    }

    /// The event in the form of the protocol. `server` describes the server.
    pub(crate) fn shown(&self, names: &ServerNames, server: impl FnOnce() -> Server) -> Event {
        match self {
            ObservedEvent::Begun(call) => Event::CallBegun(call.shown(names)),
            ObservedEvent::Ended(call) => Event::CallEnded(Box::new(call.shown(names))),
            ObservedEvent::ClientNamed => Event::ClientNamed(server()),
            ObservedEvent::Other(event) => (**event).clone(),
        }
    }
}

fn event_bytes(event: &Event) -> usize {
    match event {
        Event::QuestionOpened(question) => {
            let command = question.command.as_ref().map_or(0, |command| 4 * command.text.len());
            4 * BASE_BYTES + command + question.diff.as_ref().map_or(0, String::len)
        }
        Event::CommandEnded { end, .. } => BASE_BYTES * (1 + end.refusals.len()),
        _ => BASE_BYTES,
    }
}

/// What the ids and paths of a server's calls begin with.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerNames {
    /// Id of the server.
    pub(crate) id: String,
    /// The first root.
    pub(crate) workspace: String,
}

impl ServerNames {
    /// Id of a call.
    pub(crate) fn call_id(&self, call: u64) -> String {
        format!("{}-{call}", self.id)
    }

    /// Number of a call of this server.
    pub(crate) fn call_number(&self, id: &str) -> Option<u64> {
        id.strip_prefix(self.id.as_str())?.strip_prefix('-')?.parse().ok()
    }
}

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct ObservedCall {
    pub(crate) call: BegunCall,
    /// Id of its command in the session, once it has started.
    pub(crate) job: OnceLock<String>,
    /// Connections of its command that were refused.
    pub(crate) refused: Mutex<Vec<Refusal>>,
}

impl ObservedCall {
    pub(crate) fn new(call: BegunCall) -> ObservedCall {
        ObservedCall { call, job: OnceLock::new(), refused: Mutex::default() }
    }

    /// Records a connection of its command that was refused.
    pub(crate) fn add_refused(&self, made: &ConnectionEntry) {
        let mut refused = self.refused.lock();
        let what = format!("connect {}:{}", made.host, made.port);
        if refused.len() < MAX_REFUSED && !refused.iter().any(|known| known.what == what) {
            let why = made.why.as_deref().unwrap_or("refused");
            refused.push(Refusal {
                what,
                setting: Some(format!("{why} ({})", made.rule)),
                at: made.time_ms,
            });
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        BASE_BYTES + self.call.accesses.iter().map(access_bytes).sum::<usize>()
    }

    pub(crate) fn shown(&self, names: &ServerNames) -> RunningCall {
        let BegunCall { call, session, tool, description, accesses, started } = &self.call;
        let mut cut = Cut::default();
        RunningCall {
            id: names.call_id(*call),
            session: session.to_string(),
            tool: (*tool).to_owned(),
            title: call_title(tool, accesses, &Value::Null, Path::new(&names.workspace)),
            description: description.clone(),
            started: unix_ms(*started),
            accesses: shown_accesses(accesses, &mut cut),
            job: self.job.get().cloned(),
            in_background: false,
            cut: cut.fields(),
        }
    }
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) record: Record,
    pub(crate) job: Option<String>,
    /// Whether its command still runs.
    pub(crate) is_running: bool,
    pub(crate) denied: Vec<DeniedAccess>,
    /// Connections of its command that were refused.
    pub(crate) refused: Vec<Refusal>,
}

impl EndedCall {
    pub(crate) fn bytes(&self) -> usize {
        let accesses = self.record.accesses.iter().map(access_bytes).sum::<usize>();
        let denied = self.denied.iter().map(|denied| denied.what.len() + 100).sum::<usize>();
        let refused = self.refused.len() * BASE_BYTES;
        BASE_BYTES + accesses + denied + refused + value_bytes(&self.record.arguments)
    }

    pub(crate) fn shown(&self, names: &ServerNames) -> Call {
        let record = &self.record;
        let mut cut = Cut::default();
        let (outcome, error) = match &record.outcome {
            Ended::Failed { kind: ErrorKind::Denied, message } => {
                (Outcome::Denied, Some((ErrorKind::Denied, message)))
            }
            Ended::Failed { kind, message } => (Outcome::Failed, Some((*kind, message))),
            _ if self.is_running => (Outcome::Running, None),
            _ => (Outcome::Done, None),
        };
        let ended = unix_ms(record.started + record.duration);
        let call = RunningCall {
            id: names.call_id(record.call),
            session: record.session.to_string(),
            tool: record.tool.clone(),
            title: call_title(
                &record.tool,
                &record.accesses,
                &record.arguments,
                Path::new(&names.workspace),
            ),
            description: record.description.clone(),
            started: unix_ms(record.started),
            accesses: shown_accesses(&record.accesses, &mut cut),
            job: self.job.clone(),
            in_background: self.is_running,
            cut: cut.fields(),
        };
        Call {
            call,
            workspace: names.workspace.clone(),
            ms: u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX),
            outcome,
            error_kind: error.map(|(kind, _)| kind.name().to_owned()),
            message: error.map(|(_, message)| message.clone()),
            dry_run: record.dry_run,
            decision: record.decision.as_ref().map(|(decision, _)| decision.name().to_owned()),
            rule: record.decision.as_ref().map(|(_, rule)| rule.clone()),
            answered: record.answered.map(|answered| Answered {
                answer: answered.answer.to_owned(),
                by: answered.by.to_owned(),
            }),
            change: record.change,
            files_changed: record.files_changed,
            refusals: refusals(&self.denied, ended).chain(self.refused.clone()).collect(),
            arguments: Some(record.arguments.clone()),
        }
    }
}

/// The end of a command in the form of the protocol. `refused` are its refused connections.
pub(crate) fn ended_command(end: &CommandEnd, refused: Vec<Refusal>) -> EndedCommand {
    let at = unix_ms(end.time);
    EndedCommand {
        status: end.status.to_owned(),
        exit_code: end.exit_code,
        at,
        refusals: refusals(&end.denied, at).chain(refused).collect(),
    }
}

fn refusals(denied: &[DeniedAccess], at: u64) -> impl Iterator<Item = Refusal> {
    denied.iter().map(move |denied| Refusal {
        what: denied.what.clone(),
        setting: Some(denied.setting.to_owned()),
        at,
    })
}

/// Accesses in the form of the protocol, within the limits.
pub(crate) fn shown_accesses(accesses: &[RuntimeAccess], cut: &mut Cut) -> Vec<Access> {
    if accesses.len() > MAX_ACCESSES {
        cut.add("accesses");
    }
    let shown = accesses.iter().take(MAX_ACCESSES).map(|access| Access {
        effect: match access {
            RuntimeAccess::Connect(..) => "connect".to_owned(),
            other => other.effect().name().to_owned(),
        },
        text: cut.text("accesses", &access_text(access), MAX_ACCESS_CHARS),
    });
    shown.collect()
}

fn access_text(access: &RuntimeAccess) -> String {
    match access {
        RuntimeAccess::Read(path) | RuntimeAccess::Write(path) => {
            path.to_string_lossy().into_owned()
        }
        RuntimeAccess::WriteAny => "any file of the workspace".to_owned(),
        RuntimeAccess::Connect(host, port) => format!("{host}:{port}"),
        RuntimeAccess::Command(text) | RuntimeAccess::Reach(text) => text.clone(),
    }
}

fn access_bytes(access: &RuntimeAccess) -> usize {
    match access {
        RuntimeAccess::Read(path) | RuntimeAccess::Write(path) => path.as_os_str().len() + 32,
        RuntimeAccess::WriteAny => 32,
        RuntimeAccess::Connect(host, _) => host.len() + 32,
        RuntimeAccess::Command(text) | RuntimeAccess::Reach(text) => text.len() + 32,
    }
}

/// About the size of a value in memory.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(value_bytes).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields
                .iter()
                .map(|(key, value)| key.len() + 32 + value_bytes(value))
                .sum::<usize>()
        }
        _ => 32,
    }
}
