//! The state of a server that its monitor socket shows.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib::{
    BegunCall, CallCommand, CommandEnd, ConnectionEntry, Record, Recorder, SandboxSummary,
};

use crate::describe_question::MAX_QUESTION_BYTES;
use crate::event_ring::EventRing;
use crate::kept_commands::KeptCommands;
use crate::messages::{OutputPart, RequestError, RequestErrorKind, State};
use crate::observed_call::{EndedCall, ObservedCall, ObservedEvent, ServerNames, ended_command};
use crate::open_question::OpenQuestion;
use crate::protocol::{Connection, Event, RunningCall, Server};
use crate::question_list::QuestionList;
use crate::shorten::{first_within, shorten_call, shorten_question};

/// How long a viewer counts as active after the last report of its client.
const VISIBLE_FOR: Duration = Duration::from_secs(15);

/// Events that a client gets at once.
const BATCH: usize = 64;

/// Bytes of the running calls in the state, as JSON. Together with the questions they fit into a line.
const RUNNING_BYTES: usize = 1 << 20;

/// The time in which viewers find a new socket. They search for sockets several times in it.
const FOUND_WITHIN: Duration = Duration::from_secs(1);

/// Bytes of output in one reply.
const OUTPUT_BYTES: usize = 64 << 10;

/// Adds rules to the rules file.
pub type RuleStore = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What a server shows. Calls report to it, and clients of its socket read it.
pub struct Monitor {
    server: Mutex<Server>,
    names: OnceLock<ServerNames>,
    /// Describes the sandbox on demand: that can take a moment.
    sandbox: OnceLock<SandboxSummary>,
    pub(crate) rules: Option<RuleStore>,
    log: Mutex<Log>,
    /// An event was added.
    added: Condvar,
    /// Number of clients that wait for events.
    subscribers: AtomicUsize,
    /// Until when each client has an active viewer.
    visible: Mutex<HashMap<u64, Instant>>,
    /// A client has an active viewer now.
    seen: Condvar,
    /// When the socket was opened.
    opened: OnceLock<Instant>,
    clients: AtomicU64,
}

/// The events, and the state that they lead to.
#[derive(Debug, Default)]
pub(crate) struct Log {
    ring: EventRing<ObservedEvent>,
    running: BTreeMap<u64, Arc<ObservedCall>>,
    /// Calls that have ended and whose commands still run.
    in_background: BTreeMap<u64, Arc<ObservedCall>>,
    commands: KeptCommands,
    pub(crate) questions: QuestionList,
}

/// The next events of a client.
#[derive(Debug)]
pub(crate) struct NextEvents {
    /// Number of events that were dropped before these.
    pub(crate) missed: u64,
    /// The events with their numbers.
    pub(crate) events: Vec<(u64, Arc<ObservedEvent>)>,
}

fn is_any_active(visible: &HashMap<u64, Instant>) -> bool {
    let now = Instant::now();
    visible.values().any(|until| *until > now)
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Monitor {
    /// A monitor without a socket. `rules` stores the rules of answers, if they can be stored.
    pub fn new(server: Server, rules: Option<RuleStore>) -> Arc<Monitor> {
        Arc::new(Monitor {
            server: Mutex::new(server),
            names: OnceLock::new(),
            sandbox: OnceLock::new(),
            rules,
            log: Mutex::default(),
            added: Condvar::new(),
            subscribers: AtomicUsize::new(0),
            visible: Mutex::default(),
            seen: Condvar::new(),
            opened: OnceLock::new(),
            clients: AtomicU64::new(0),
        })
    }

    /// Name and version of the MCP client, once known.
    pub(crate) fn client_name(&self) -> Option<String> {
        self.server.lock().client.clone()
    }

    /// The directories that the server serves.
    pub(crate) fn roots(&self) -> Vec<String> {
        self.server.lock().roots.clone()
    }

    /// An event in the form of the protocol.
    pub(crate) fn show(&self, event: &ObservedEvent) -> Event {
        event.shown(self.names(), || self.server())
    }

    /// Description of the server. The first time, it may have to find out which sandbox the system supports.
    pub fn server(&self) -> Server {
        let server = self.server.lock().clone();
        match self.sandbox.get() {
            Some(summary) => Server { sandbox: summary(), ..server },
            None => server,
        }
    }

    /// Sets the description of the sandbox.
    pub fn describe_sandbox(&self, summary: SandboxSummary) {
        // A server has one sandbox.
        let _ = self.sandbox.set(summary);
    }

    /// Sets the id of the server, which begins the ids of its calls and questions: the one of the runtime, so that
    /// the log of calls has the same ids.
    pub fn set_id(&self, id: &str) {
        let workspace = self.server.lock().roots.first().cloned().unwrap_or_default();
        // A second socket would have the ids of the first.
        let _ = self.names.set(ServerNames { id: id.to_owned(), workspace });
    }

    /// The id of the server, if it was set.
    pub(crate) fn id(&self) -> Option<&str> {
        self.names.get().map(|names| names.id.as_str()).filter(|id| !id.is_empty())
    }

    pub(crate) fn names(&self) -> &ServerNames {
        self.names.get_or_init(ServerNames::default)
    }

    /// Whether a viewer is connected and active now.
    pub fn has_active_viewer(&self) -> bool {
        is_any_active(&self.visible.lock())
    }

    /// The same. If the socket was opened just now, waits for viewers that have not found it yet.
    pub(crate) fn finds_active_viewer(&self) -> bool {
        let mut visible = self.visible.lock();
        if let Some(opened) = self.opened.get() {
            let until = *opened + FOUND_WITHIN;
            self.seen.wait_while_until(&mut visible, |visible| !is_any_active(visible), until);
        }
        is_any_active(&visible)
    }

    /// Notes that viewers can find the socket from now on.
    pub(crate) fn note_opened(&self) {
        // Another socket changes nothing.
        let _ = self.opened.set(Instant::now());
    }

    /// Receives the calls of a runtime.
    pub fn recorder(self: &Arc<Monitor>) -> impl Recorder + use<> {
        CallObserver(self.clone())
    }

    /// The current state, and the event number after which a client reads on.
    pub(crate) fn state(&self, after: Option<u64>) -> State {
        let log = self.log.lock();
        let (seq, missed) = after.map_or((log.ring.last(), 0), |after| log.ring.resume(after));
        let waiting: Vec<Arc<OpenQuestion>> = log.questions.open().cloned().collect();
        let background: Vec<Arc<ObservedCall>> = log.in_background.values().cloned().collect();
        let running: Vec<Arc<ObservedCall>> = log.running.values().cloned().collect();
        drop(log);
        let bytes = waiting.iter().fold(0_usize, |sum, open| sum.saturating_add(open.bytes()));
        let each = if bytes + waiting.len() <= MAX_QUESTION_BYTES {
            MAX_QUESTION_BYTES
        } else {
            MAX_QUESTION_BYTES / waiting.len() - 1
        };
        let waiting = waiting.iter().map(|open| shorten_question(open.shown(), each));
        let each = RUNNING_BYTES / (background.len() + running.len()).max(1);
        let background = background.iter().map(|call| {
            let call = call.shown(self.names());
            RunningCall { in_background: true, ..call }
        });
        let running = background.chain(running.iter().map(|call| call.shown(self.names())));
        let running = running.map(|call| shorten_call(call, each));
        State {
            seq,
            missed,
            waiting: first_within(waiting, MAX_QUESTION_BYTES),
            running: first_within(running, RUNNING_BYTES),
        }
    }

    /// Waits for events after a number, at most for this time.
    pub(crate) fn next_events(&self, after: u64, wait: Duration) -> NextEvents {
        let mut log = self.log.lock();
        if log.ring.last() <= after {
            self.added.wait_for(&mut log, wait);
        }
        let (after, missed) = log.ring.resume(after);
        NextEvents { missed, events: log.ring.after(after, BATCH) }
    }

    /// Registers a client that waits for events, until the result is dropped.
    pub(crate) fn subscriber(&self) -> Subscriber<'_> {
        self.subscribers.fetch_add(1, Ordering::AcqRel);
        Subscriber { monitor: self }
    }

    /// A number for a new client.
    pub(crate) fn next_client(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    /// Records whether a client has an active viewer.
    pub(crate) fn set_visible(&self, client: u64, visible: bool) {
        let mut all = self.visible.lock();
        if visible {
            all.insert(client, Instant::now() + VISIBLE_FOR);
            self.seen.notify_all();
        } else {
            all.remove(&client);
        }
    }

    /// Changes the state and adds the events of the change, in one step.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Log) -> (T, Option<Event>)) -> T {
        let mut log = self.log.lock();
        let (result, event) = change(&mut log);
        if let Some(event) = event {
            self.push(&mut log, ObservedEvent::Other(Box::new(event)));
        }
        result
    }

    fn push(&self, log: &mut Log, event: ObservedEvent) {
        log.ring.push(event.bytes(), Arc::new(event));
        if self.subscribers.load(Ordering::Acquire) > 0 {
            self.added.notify_all();
        }
    }

    /// Records the name and version of the MCP client.
    pub fn name_client(&self, client: &str) {
        let mut server = self.server.lock();
        if server.client.as_deref() == Some(client) {
            return;
        }
        server.client = Some(client.to_owned());
        drop(server);
        self.push(&mut self.log.lock(), ObservedEvent::ClientNamed);
    }

    /// Output of the command of a call.
    pub(crate) fn output(&self, call: &str, from: u64) -> Result<OutputPart, RequestError> {
        let part = self.command(call)?.output(from, OUTPUT_BYTES);
        Ok(OutputPart {
            from: part.from,
            next: part.next,
            text: part.text,
            dropped: part.dropped,
            ended: part.ended,
        })
    }

    /// Ends the command of a call.
    pub(crate) fn stop(&self, call: &str) -> Result<(), RequestError> {
        if self.command(call)?.stop() {
            Ok(())
        } else {
            Err(RequestError::new(RequestErrorKind::NotFound, "the command has ended"))
        }
    }

    fn command(&self, call: &str) -> Result<CallCommand, RequestError> {
        let number = self.names().call_number(call);
        let command = number.and_then(|number| self.log.lock().commands.get(number));
        let missing = || {
            let message = "the call has no command, or its output is no longer kept";
            RequestError::new(RequestErrorKind::NotFound, message)
        };
        command.ok_or_else(missing)
    }
}

/// Reports the calls of a runtime to its monitor.
struct CallObserver(Arc<Monitor>);

impl Recorder for CallObserver {
    fn begun(&self, call: BegunCall) {
        let number = call.call;
        let call = Arc::new(ObservedCall::new(call));
        let mut log = self.0.log.lock();
        log.running.insert(number, call.clone());
        self.0.push(&mut log, ObservedEvent::Begun(call));
    }

    fn command_started(&self, call: u64, command: CallCommand) {
        let mut log = self.0.log.lock();
        let Some(running) = log.running.get(&call) else { return };
        let session = running.call.session;
        // A call starts one command.
        let _ = running.job.set(command.id().to_owned());
        log.commands.add(call, session, command);
    }

    fn connection(&self, made: &ConnectionEntry) {
        let mut log = self.0.log.lock();
        let call = log.commands.call_of(made.session, &made.job);
        let is_refused = made.decision == "refused";
        let calls = call.and_then(|call| log.running.get(&call).or(log.in_background.get(&call)));
        if let Some(running) = calls
            && is_refused
        {
            running.add_refused(made);
        }
        let decision = if is_refused { "deny" } else { "allow" };
        let is_closed = !made.is_open && made.decision == "allowed";
        let connection = Connection {
            call: call.map(|call| self.0.names().call_id(call)),
            host: made.host.clone(),
            port: made.port,
            decision: decision.to_owned(),
            rule: Some(made.rule.clone()),
            why: made.why.clone(),
            bytes_up: is_closed.then_some(made.sent),
            bytes_down: is_closed.then_some(made.received),
            at: made.time_ms,
        };
        self.0.push(&mut log, ObservedEvent::Other(Box::new(Event::Connection(connection))));
    }

    fn record(&self, record: Record) {
        let mut log = self.0.log.lock();
        let begun = log.running.remove(&record.call);
        let job = begun.as_ref().and_then(|call| call.job.get().cloned());
        let refused = begun.as_ref().map(|call| call.refused.lock().clone());
        let command = job.as_ref().and_then(|_| log.commands.get(record.call));
        let is_running = command.as_ref().is_some_and(CallCommand::is_running);
        if let Some(begun) = begun.filter(|_| is_running) {
            log.in_background.insert(record.call, begun);
        }
        let ended = EndedCall {
            record,
            job,
            is_running,
            denied: command.map(|command| command.denied_accesses()).unwrap_or_default(),
            refused: refused.unwrap_or_default(),
        };
        self.0.push(&mut log, ObservedEvent::Ended(Box::new(ended)));
    }

    fn command_ended(&self, call: u64, end: CommandEnd) {
        let mut log = self.0.log.lock();
        let begun = log.in_background.remove(&call);
        let refused = begun.map(|call| std::mem::take(&mut *call.refused.lock()));
        let event = Event::CommandEnded {
            id: self.0.names().call_id(call),
            end: ended_command(&end, refused.unwrap_or_default()),
        };
        self.0.push(&mut log, ObservedEvent::Other(Box::new(event)));
    }
}

/// A client that waits for events.
pub(crate) struct Subscriber<'a> {
    monitor: &'a Monitor,
}

impl Drop for Subscriber<'_> {
    fn drop(&mut self) {
        self.monitor.subscribers.fetch_sub(1, Ordering::AcqRel);
    }
}
