//! Serves a monitor on a socket. Each client has its own threads, and no call waits for them.

use std::io::{self, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::line_io::{MAX_LINE_BYTES, read_line, write_line};
use crate::messages::{Request, RequestError, RequestErrorKind, RequestLine, ServerLine};
use crate::monitor::Monitor;
use crate::peer::require_same_user;
use crate::socket_directory::{SocketPath, bind};

/// More clients than a user has.
const MAX_CLIENTS: usize = 16;

/// A client that does not read for this time is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a subscription checks whether its client is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Pause after a failed accept, which is usually caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The socket of a monitor. Dropping it removes the socket and disconnects its clients.
#[derive(Debug)]
pub struct ListeningSocket {
    socket: SocketPath,
    listener: Arc<UnixListener>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    monitor: Arc<Monitor>,
    is_closed: AtomicBool,
    clients: AtomicUsize,
}

impl Monitor {
    /// Serves this monitor on a new socket in a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if other users can access the directory, or if the socket cannot be created.
    pub fn listen(self: &Arc<Monitor>, directory: &Path) -> io::Result<ListeningSocket> {
        let (listener, socket) = bind(directory, self.id())?;
        self.set_id(&socket.server);
        self.note_opened();
        let listener = Arc::new(listener);
        let shared = Arc::new(Shared {
            monitor: self.clone(),
            is_closed: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
        });
        let (accepting, served) = (listener.clone(), shared.clone());
        let thread = thread::Builder::new().name("monitor".to_owned());
        let listening = ListeningSocket { socket, listener, shared };
        thread.spawn(move || served.accept(&accepting))?;
        Ok(listening)
    }
}

impl ListeningSocket {
    /// The path of the socket.
    pub fn socket(&self) -> &SocketPath {
        &self.socket
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        let _ = std::fs::remove_file(&self.socket.path);
        // Ends the accept that waits.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
    }
}

impl Shared {
    fn accept(self: &Arc<Shared>, listener: &UnixListener) {
        while !self.is_closed.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((stream, _)) => {
                    // The stream is closed if the thread cannot be started.
                    let _ = self.begin(stream);
                }
                Err(_) if self.is_closed.load(Ordering::Acquire) => return,
                Err(_) => thread::sleep(ACCEPT_RETRY_DELAY),
            }
        }
    }

    fn begin(self: &Arc<Shared>, stream: UnixStream) -> io::Result<()> {
        require_same_user(&stream)?;
        let counted = CountedClient::add(self);
        let Some(counted) = counted else { return Err(io::Error::other("too many clients")) };
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let shared = self.clone();
        let thread = thread::Builder::new().name("monitor client".to_owned());
        thread.spawn(move || {
            let _counted = counted;
            let Ok(input) = stream.try_clone() else { return };
            let client = Arc::new(ServedClient {
                number: shared.monitor.next_client(),
                shared,
                output: Mutex::new(stream),
                is_subscribed: AtomicBool::new(false),
                is_gone: AtomicBool::new(false),
            });
            // The client has disconnected or broken the protocol: both end it.
            let _ = client.serve(BufReader::new(input));
            client.leave();
        })?;
        Ok(())
    }
}

/// A client that counts towards the limit until it is dropped.
struct CountedClient {
    shared: Arc<Shared>,
}

impl CountedClient {
    fn add(shared: &Arc<Shared>) -> Option<CountedClient> {
        let before = shared.clients.fetch_add(1, Ordering::AcqRel);
        let counted = CountedClient { shared: shared.clone() };
        (before < MAX_CLIENTS).then_some(counted)
    }
}

impl Drop for CountedClient {
    fn drop(&mut self) {
        self.shared.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connected client.
struct ServedClient {
    number: u64,
    shared: Arc<Shared>,
    output: Mutex<UnixStream>,
    is_subscribed: AtomicBool,
    is_gone: AtomicBool,
}

impl ServedClient {
    fn serve(self: &Arc<ServedClient>, mut input: BufReader<UnixStream>) -> io::Result<()> {
        while let Some(line) = read_line(&mut input)? {
            if self.shared.is_closed.load(Ordering::Acquire) {
                return Ok(());
            }
            match serde_json::from_slice(&line) {
                Ok(RequestLine { id, request: Request::Subscribe { after } }) => {
                    self.subscribe(id, after)?;
                }
                Ok(RequestLine { id, request }) => {
                    let line = match self.answer(request) {
                        Ok(result) => ServerLine::Done { id, result },
                        Err(error) => ServerLine::Failed { id, error },
                    };
                    self.write(&line)?;
                }
                Err(error) => {
                    let error = RequestError::new(RequestErrorKind::Invalid, error.to_string());
                    self.write(&ServerLine::Failed { id: id_of(&line), error })?;
                }
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Result<Value, RequestError> {
        let monitor = &self.shared.monitor;
        let json = |result: Result<Value, serde_json::Error>| {
            result.map_err(|error| RequestError::new(RequestErrorKind::Io, error.to_string()))
        };
        match request {
            Request::Hello => json(serde_json::to_value(monitor.server())),
            Request::Visible { visible } => {
                monitor.set_visible(self.number, visible);
                Ok(Value::Object(serde_json::Map::new()))
            }
            Request::Answer(given) => json(serde_json::to_value(monitor.answer(given)?)),
            Request::Output { call, from } => {
                json(serde_json::to_value(monitor.output(&call, from)?))
            }
            Request::Stop { call } => {
                monitor.stop(&call)?;
                Ok(Value::Object(serde_json::Map::new()))
            }
            Request::Subscribe { .. } => {
                Err(RequestError::new(RequestErrorKind::Invalid, "subscribe has no result alone"))
            }
        }
    }

    /// Sends the state, and then events on a thread of their own.
    fn subscribe(self: &Arc<ServedClient>, id: u64, after: Option<u64>) -> io::Result<()> {
        if self.is_subscribed.swap(true, Ordering::AcqRel) {
            let message = "this connection is subscribed already";
            let error = RequestError::new(RequestErrorKind::Invalid, message);
            return self.write(&ServerLine::Failed { id, error });
        }
        let state = self.shared.monitor.state(after);
        let seq = state.seq;
        self.write(&ServerLine::Done { id, result: serde_json::to_value(state)? })?;
        let client = self.clone();
        let thread = thread::Builder::new().name("monitor events".to_owned());
        thread.spawn(move || {
            if client.send_events(seq).is_err() {
                client.leave();
            }
        })?;
        Ok(())
    }

    /// Sends events as they come, until the client has left.
    fn send_events(&self, mut after: u64) -> io::Result<()> {
        let monitor = &self.shared.monitor;
        let _subscriber = monitor.subscriber();
        while !self.is_gone.load(Ordering::Acquire) {
            monitor.expire_questions();
            let next = monitor.next_events(after, CHECK_INTERVAL);
            if next.missed > 0 {
                after += next.missed;
                self.write(&ServerLine::Missed { seq: after + 1, missed: next.missed })?;
            }
            let mut lines = Vec::new();
            for (seq, event) in next.events {
                let start = lines.len();
                write_line(&mut lines, &ServerLine::Event { seq, event: monitor.show(&event) })?;
                // Its client would disconnect.
                if (lines.len() - start) as u64 > MAX_LINE_BYTES {
                    lines.truncate(start);
                    write_line(&mut lines, &ServerLine::Missed { seq: seq + 1, missed: 1 })?;
                }
                after = seq;
            }
            if !lines.is_empty() {
                self.output.lock().write_all(&lines)?;
            }
        }
        Ok(())
    }

    fn write(&self, line: &ServerLine) -> io::Result<()> {
        write_line(&mut *self.output.lock(), line)
    }

    /// Disconnects, and ends the thread that reads and the one that sends events.
    fn leave(&self) {
        self.is_gone.store(true, Ordering::Release);
        self.shared.monitor.set_visible(self.number, false);
        let _ = self.output.lock().shutdown(Shutdown::Both);
    }
}

/// The id of a request that is not valid otherwise, or 0.
fn id_of(line: &[u8]) -> u64 {
    let value: Option<Value> = serde_json::from_slice(line).ok();
    value.and_then(|value| value.get("id")?.as_u64()).unwrap_or(0)
}
