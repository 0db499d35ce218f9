//! The state of a server that its monitor socket shows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::event_ring::EventRing;
use crate::messages::{RequestError, RequestErrorKind, State};
use crate::open_question::OpenQuestion;
use crate::protocol::{Event, Question, Server};

/// How long somebody counts as looking after the last message that says so.
const VISIBLE_FOR: Duration = Duration::from_secs(15);

/// Events that a client gets at once.
const BATCH: usize = 64;

/// What a server shows. Calls report to it; clients of its socket read it.
#[derive(Debug)]
pub struct Monitor {
    server: Mutex<Server>,
    /// Id of the server, which begins the ids of its calls and questions.
    id: Mutex<String>,
    log: Mutex<Log>,
    /// An event was added.
    added: Condvar,
    /// Number of clients that wait for events.
    subscribers: AtomicUsize,
    /// Until when each client has somebody who looks.
    visible: Mutex<HashMap<u64, Instant>>,
    clients: AtomicU64,
}

/// The events, and the state that they lead to.
#[derive(Debug, Default)]
struct Log {
    ring: EventRing<Event>,
    questions: Vec<Arc<OpenQuestion>>,
}

/// The next events of a client.
#[derive(Debug)]
pub(crate) struct NextEvents {
    /// Number of events that were dropped before these.
    pub(crate) missed: u64,
    /// The events with their numbers.
    pub(crate) events: Vec<(u64, Arc<Event>)>,
}

impl Monitor {
    /// A monitor of this server, without a socket.
    pub fn new(server: Server) -> Arc<Monitor> {
        Arc::new(Monitor {
            server: Mutex::new(server),
            id: Mutex::default(),
            log: Mutex::default(),
            added: Condvar::new(),
            subscribers: AtomicUsize::new(0),
            visible: Mutex::default(),
            clients: AtomicU64::new(0),
        })
    }

    /// Description of the server.
    pub fn server(&self) -> Server {
        self.server.lock().clone()
    }

    pub(crate) fn set_id(&self, id: &str) {
        *self.id.lock() = id.to_owned();
    }

    /// Whether somebody is looking at this server now.
    pub fn is_watched(&self) -> bool {
        let now = Instant::now();
        self.visible.lock().values().any(|until| *until > now)
    }

    /// The current state, and the event number after which a client reads on.
    pub(crate) fn state(&self, after: Option<u64>) -> State {
        let log = self.log.lock();
        let (seq, missed) = after.map_or((log.ring.last(), 0), |after| log.ring.resume(after));
        let waiting: Vec<Question> =
            log.questions.iter().map(|open| open.question().clone()).collect();
        State { seq, missed, waiting, running: Vec::new() }
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

    /// Records whether somebody looks at a client.
    pub(crate) fn set_visible(&self, client: u64, visible: bool) {
        let mut all = self.visible.lock();
        match visible {
            true => all.insert(client, Instant::now() + VISIBLE_FOR),
            false => all.remove(&client),
        };
    }

    fn push(&self, log: &mut Log, bytes: usize, event: Event) {
        log.ring.push(bytes, Arc::new(event));
        if self.subscribers.load(Ordering::Acquire) > 0 {
            self.added.notify_all();
        }
    }

    /// Records the name and version of the MCP client.
    pub fn name_client(&self, client: &str) {
        let server = {
            let mut server = self.server.lock();
            if server.client.as_deref() == Some(client) {
                return;
            }
            server.client = Some(client.to_owned());
            server.clone()
        };
        self.push(&mut self.log.lock(), client.len() + 200, Event::ClientNamed(server));
    }

    /// An open or recently settled question.
    pub(crate) fn question(&self, id: &str) -> Result<Arc<OpenQuestion>, RequestError> {
        let log = self.log.lock();
        let found = log.questions.iter().find(|open| open.question().id == id);
        let missing = || RequestError::new(RequestErrorKind::NotFound, "there is no such question");
        found.cloned().ok_or_else(missing)
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
