//! The client's end of a monitor socket.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::line_io::{read_line, write_line};
use crate::messages::{
    GivenAnswer, OutputPart, Request, RequestError, RequestErrorKind, RequestLine, ServerLine,
    State,
};
use crate::peer::require_same_user;
use crate::protocol::{Event, Server, Settled};
use crate::socket_directory::SocketPath;

/// A server replies at once, unless its machine is very busy.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// A request is short, so it waits only if the server has not read many before it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a server sends by itself.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "nearly all notices are events")]
pub enum Notice {
    /// An event, with its number.
    Event {
        /// Number of the event.
        seq: u64,
        /// The event.
        event: Event,
    },
    /// Events were dropped because the client read too slowly.
    Missed {
        /// Their number.
        missed: u64,
    },
    /// The connection has ended. It is the last notice.
    Closed,
}

/// A connection to a server. Requests can be made on several threads. Dropping it disconnects.
#[derive(Debug)]
pub struct Client {
    server: String,
    stream: Mutex<UnixStream>,
    pending: Arc<Mutex<Pending>>,
}

type Reply = Result<Value, RequestError>;

/// The requests without a reply.
#[derive(Debug, Default)]
struct Pending {
    last: u64,
    is_closed: bool,
    requests: HashMap<u64, SyncSender<Reply>>,
}

impl Client {
    /// Connects to a server. `on_notice` is called on a thread of the connection.
    ///
    /// # Errors
    ///
    /// Fails if the server has ended or belongs to another user.
    pub fn connect(
        socket: &SocketPath,
        on_notice: impl FnMut(Notice) + Send + 'static,
    ) -> io::Result<Client> {
        let stream = socket.connect()?;
        require_same_user(&stream)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let input = BufReader::new(stream.try_clone()?);
        let pending: Arc<Mutex<Pending>> = Arc::default();
        let replies = pending.clone();
        let thread = thread::Builder::new().name("monitor notices".to_owned());
        thread.spawn(move || receive(input, &replies, on_notice))?;
        Ok(Client { server: socket.server.clone(), stream: Mutex::new(stream), pending })
    }

    /// Id of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Asks for the description of the server.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails.
    pub fn hello(&self) -> Result<Server, RequestError> {
        self.hello_within(REPLY_TIMEOUT)
    }

    /// Asks for the description of the server, and waits at most for this time.
    pub(crate) fn hello_within(&self, timeout: Duration) -> Result<Server, RequestError> {
        self.request_within(Request::Hello, timeout)
    }

    /// Asks for the state and all later events, which come as notices. A connection can do this once.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails, or for the second time.
    pub fn subscribe(&self, after: Option<u64>) -> Result<State, RequestError> {
        self.request(Request::Subscribe { after })
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// Fails with [`RequestErrorKind::Conflict`] if the question was settled before.
    pub fn answer(&self, answer: GivenAnswer) -> Result<Settled, RequestError> {
        self.request(Request::Answer(answer))
    }

    /// Asks for output of the command of a call, from this byte.
    ///
    /// # Errors
    ///
    /// Fails with [`RequestErrorKind::NotFound`] if the output is not available.
    pub fn output(&self, call: &str, from: u64) -> Result<OutputPart, RequestError> {
        self.request(Request::Output { call: call.to_owned(), from })
    }

    /// Ends the command of a call.
    ///
    /// # Errors
    ///
    /// Fails with [`RequestErrorKind::NotFound`] if the call has no running command.
    pub fn stop(&self, call: &str) -> Result<(), RequestError> {
        self.request::<Value>(Request::Stop { call: call.to_owned() }).map(|_| ())
    }

    /// Reports whether a viewer is active. Repeat it every few seconds.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails.
    pub fn visible(&self, visible: bool) -> Result<(), RequestError> {
        self.request::<Value>(Request::Visible { visible }).map(|_| ())
    }

    /// Reports whether a viewer is active, without waiting for the reply.
    pub(crate) fn tell_visible(&self, visible: bool) {
        let id = {
            let mut pending = self.pending.lock();
            pending.last += 1;
            pending.last
        };
        let stream = &mut *self.stream.lock();
        let line = RequestLine { id, request: Request::Visible { visible } };
        if write_line(stream, &line).is_err() {
            // The server has ended, or it has not read for hours. Its thread removes it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn request<T: DeserializeOwned>(&self, request: Request) -> Result<T, RequestError> {
        self.request_within(request, REPLY_TIMEOUT)
    }

    fn request_within<T: DeserializeOwned>(
        &self,
        request: Request,
        timeout: Duration,
    ) -> Result<T, RequestError> {
        let failed = |message: String| RequestError::new(RequestErrorKind::Io, message);
        let (sender, reply) = sync_channel(1);
        let id = {
            let mut pending = self.pending.lock();
            if pending.is_closed {
                return Err(failed("the server has closed the connection".to_owned()));
            }
            pending.last += 1;
            let id = pending.last;
            pending.requests.insert(id, sender);
            id
        };
        let written = write_line(&mut *self.stream.lock(), &RequestLine { id, request });
        let reply = match written {
            Ok(()) => reply.recv_timeout(timeout).map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        };
        self.pending.lock().requests.remove(&id);
        serde_json::from_value(reply??).map_err(|error| failed(error.to_string()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.stream.lock().shutdown(Shutdown::Both);
    }
}

/// Receives lines until the connection ends.
fn receive(
    mut input: BufReader<UnixStream>,
    pending: &Mutex<Pending>,
    mut on_notice: impl FnMut(Notice),
) {
    while let Ok(Some(line)) = read_line(&mut input) {
        let (id, reply) = match serde_json::from_slice(&line) {
            Ok(ServerLine::Done { id, result }) => (id, Ok(result)),
            Ok(ServerLine::Failed { id, error }) => (id, Err(error)),
            Ok(ServerLine::Event { seq, event }) => {
                on_notice(Notice::Event { seq, event });
                continue;
            }
            Ok(ServerLine::Missed { missed, .. }) => {
                on_notice(Notice::Missed { missed });
                continue;
            }
            // An event of a newer version.
            Err(_) => continue,
        };
        if let Some(waiting) = pending.lock().requests.remove(&id) {
            let _ = waiting.try_send(reply);
        }
    }
    let mut pending = pending.lock();
    pending.is_closed = true;
    // Requests that wait end with an error.
    pending.requests.clear();
    drop(pending);
    on_notice(Notice::Closed);
}
