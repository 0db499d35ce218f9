//! The thread that sends the audit logs of this process to the store.
//!
//! The local logs are the queue. Calls append to them as without a store, and never wait for this thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use std::path::PathBuf;

use parking_lot::{Condvar, Mutex};
use toolcrib::AuditOutbox;
use toolcrib_net::Backoff;

use crate::audit_rows::OTHER_RECORD;
use crate::connection::Connection;
use crate::error::StoreError;
use crate::outgoing_log::{OutgoingLog, Step};
use crate::schema::{StoreId, identify};
use crate::url::StoreUrl;

/// How often it looks for new records. Looking costs one system call per log.
const INTERVAL: Duration = Duration::from_millis(500);

/// The time that the end of the program waits for the last records.
const LAST_SEND: Duration = Duration::from_secs(3);

/// A connection without use is closed after this time, so that idle servers hold none.
const IDLE: Duration = Duration::from_secs(60);

/// Sends audit logs to the store. Dropping it sends the remaining records, within a few seconds.
pub struct AuditSender {
    shared: Arc<Shared>,
}

struct Shared {
    url: StoreUrl,
    /// The state directory.
    directory: PathBuf,
    notice: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    added: Vec<Followed>,
    is_ending: bool,
    has_ended: bool,
}

/// A log that is sent.
struct Followed {
    log: OutgoingLog,
    /// No more records come: it is dropped when the store has all.
    is_closed: Arc<AtomicBool>,
    /// After an error that is only about this log.
    not_before: Option<Instant>,
    backoff: Backoff,
}

/// As long as this exists, the records of a log are sent.
#[derive(Debug)]
pub struct FollowedLog(Arc<AtomicBool>);

impl Drop for FollowedLog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl AuditSender {
    /// Starts the thread. `notice` gets a sentence when sending begins to fail, and when it works again.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started. A store that cannot be reached is no error.
    pub fn start(
        url: StoreUrl,
        directory: PathBuf,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<AuditSender> {
        let notice = Box::new(notice);
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { url, directory, notice, state, changed });
        let thread = shared.clone();
        std::thread::Builder::new().name("audit store".to_owned()).spawn(move || {
            Sending::new(&thread).run();
            thread.state.lock().has_ended = true;
            thread.changed.notify_all();
        })?;
        Ok(AuditSender { shared })
    }

    /// Sends the records of a log from now on, and those that the store does not have yet. `workspace` is its name there.
    pub fn follow(&self, outbox: AuditOutbox, workspace: &str) -> FollowedLog {
        let is_closed = Arc::new(AtomicBool::new(false));
        let followed = Followed::new(outbox, workspace, is_closed.clone());
        self.shared.state.lock().added.push(followed);
        FollowedLog(is_closed)
    }
}

impl Drop for AuditSender {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + LAST_SEND;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }
}

impl Followed {
    fn new(outbox: AuditOutbox, workspace: &str, is_closed: Arc<AtomicBool>) -> Followed {
        let log = OutgoingLog::new(outbox, workspace.to_owned());
        Followed { log, is_closed, not_before: None, backoff: Backoff::default() }
    }

    /// Whether there may be something to send now.
    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|until| now >= until) && self.log.may_have_more()
    }
}

/// The state of the thread.
struct Sending<'s> {
    shared: &'s Shared,
    connection: Option<(Connection, StoreId)>,
    last_use: Instant,
    not_before: Option<Instant>,
    backoff: Backoff,
    logs: Vec<Followed>,
    has_looked_for_others: bool,
    has_problem: bool,
}

impl<'s> Sending<'s> {
    fn new(shared: &'s Shared) -> Sending<'s> {
        Sending {
            shared,
            connection: None,
            last_use: Instant::now(),
            not_before: None,
            backoff: Backoff::default(),
            logs: Vec::new(),
            has_looked_for_others: false,
            has_problem: false,
        }
    }

    fn run(&mut self) {
        loop {
            let is_ending = self.wait();
            self.round(is_ending);
            if is_ending {
                return;
            }
        }
    }

    /// Waits for the next look. Returns whether the program ends.
    fn wait(&mut self) -> bool {
        let mut state = self.shared.state.lock();
        if !state.is_ending && state.added.is_empty() {
            self.shared.changed.wait_for(&mut state, INTERVAL);
        }
        self.logs.append(&mut state.added);
        state.is_ending
    }

    /// Sends the waiting records.
    fn round(&mut self, is_ending: bool) {
        let now = Instant::now();
        let is_done =
            |one: &Followed| one.is_closed.load(Ordering::Acquire) && !one.log.may_have_more();
        self.logs.retain(|one| !is_done(one));
        if !self.logs.iter().any(|one| one.is_due(now)) {
            self.connection.take_if(|_| self.last_use.elapsed() > IDLE);
            return;
        }
        if !is_ending && self.not_before.is_some_and(|until| now < until) {
            return;
        }
        match self.connect().and_then(|()| self.send_all(now)) {
            Ok(()) => {
                self.not_before = None;
                self.backoff.reset();
            }
            Err(error) => {
                self.connection = None;
                self.logs.iter_mut().for_each(|one| one.log.forget_position());
                self.not_before = Some(Instant::now() + self.backoff.next_wait());
                self.problem(&error);
            }
        }
    }

    fn connect(&mut self) -> Result<(), StoreError> {
        self.last_use = Instant::now();
        if self.connection.is_some() {
            return Ok(());
        }
        let mut connection = Connection::open(&self.shared.url)?;
        let store = identify(&mut connection)?;
        if !self.has_looked_for_others {
            self.add_left_logs(&store);
            self.has_looked_for_others = true;
        }
        self.connection = Some((connection, store));
        Ok(())
    }

    /// Adds the logs of other workspaces whose last records were not sent, because the store could not be reached.
    fn add_left_logs(&mut self, store: &StoreId) {
        let Ok(left) = AuditOutbox::all_of_store(&self.shared.directory, &store.0) else { return };
        for outbox in left {
            let is_known = self.logs.iter().any(|one| one.log.path() == outbox.workspace());
            let Ok(Some(position)) = outbox.position() else { continue };
            if !is_known {
                let is_closed = Arc::new(AtomicBool::new(true));
                self.logs.push(Followed::new(outbox, &position.name, is_closed));
            }
        }
    }

    /// Sends all logs. Fails if the connection is lost; other errors are about one log.
    fn send_all(&mut self, now: Instant) -> Result<(), StoreError> {
        let Some((connection, store)) = &mut self.connection else { return Ok(()) };
        let (mut problem, mut done) = (None, Vec::new());
        for (at, one) in self.logs.iter_mut().enumerate().filter(|(_, one)| one.is_due(now)) {
            loop {
                self.last_use = Instant::now();
                match one.log.send_some(connection, store, &*self.shared.notice) {
                    Ok(Step::Sent) => {}
                    Ok(Step::UpToDate) => {
                        (one.not_before, one.backoff) = (None, Backoff::default());
                        break;
                    }
                    // It is sent, if not by this process.
                    Ok(Step::ByAnother) if one.is_closed.load(Ordering::Acquire) => {
                        done.push(at);
                        break;
                    }
                    Ok(Step::ByAnother) => {
                        one.not_before = Some(Instant::now() + Backoff::default().next_wait());
                        break;
                    }
                    Err(error) if error.ends_connection() => return Err(error),
                    // Once more, after asking which records the store has.
                    Err(error) if error.has_code(OTHER_RECORD) && one.not_before.is_none() => {
                        one.log.forget_position();
                        one.not_before = Some(now);
                    }
                    Err(error) => {
                        one.log.forget_position();
                        one.not_before = Some(Instant::now() + one.backoff.next_wait());
                        problem = Some(error);
                        break;
                    }
                }
            }
        }
        for at in done.into_iter().rev() {
            self.logs.swap_remove(at);
        }
        match problem {
            Some(error) => self.problem(&error),
            None => self.works_again(),
        }
        Ok(())
    }

    /// Tells the first problem after a success.
    fn problem(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.has_problem, true) {
            (self.shared.notice)(&format!(
                "the audit log is not being sent to the store: {error}. Calls go on, and their records are sent later."
            ));
        }
    }

    fn works_again(&mut self) {
        if std::mem::replace(&mut self.has_problem, false) {
            (self.shared.notice)("the audit log is being sent to the store again");
        }
    }
}
