//! Which client a request belongs to, and how long a client that sends nothing is kept.
//!
//! A client is known by the session of the protocol that it began with `initialize`, or by the name of a
//! session that it shares with others. A request that has neither, as those of protocol version 2026-07-28 do,
//! belongs to the connection that it came on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_core::Stream;
use hyper::header::{HeaderMap, HeaderName};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionManager};

use crate::client_session::Client;

/// The header by which clients say that they share a session: the same name is the same session.
pub(super) const SHARED_SESSION: HeaderName = HeaderName::from_static("toolcrib-session");

/// Where the protocol has its own.
const PROTOCOL_SESSION: &str = "mcp-session-id";

/// More sessions than clients of one machine have. One more ends the one that has been idle for longest.
const MAX_SESSIONS: usize = 128;

/// A session that is not used for so long ends, and its commands with it.
const MAX_IDLE: Duration = Duration::from_secs(60 * 60);

/// Idle sessions are looked for this often.
const SWEEP: Duration = Duration::from_secs(30);

/// A name has at most so many characters.
const MAX_NAME_CHARS: usize = 64;

/// The sessions of a server.
pub(super) struct Sessions {
    protocol: Arc<LocalSessionManager>,
    clients: Mutex<HashMap<Key, Known>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Protocol(SessionId),
    Shared(String),
}

/// A client that is known by a key. It is in use as long as somebody else refers to it: a request that is
/// answered, or a call that runs.
struct Known {
    client: Arc<Client>,
    used: Instant,
}

impl Known {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.client) == 1
    }
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut protocol = LocalSessionManager::default();
        // Sessions end by the rules of this file alone.
        protocol.session_config.keep_alive = None;
        Sessions { protocol: Arc::new(protocol), clients: Mutex::default() }
    }

    /// The client of a request, where it has no other that of its connection. Nothing, if it names a session by
    /// what is not a name.
    pub(super) fn client(
        &self,
        headers: &HeaderMap,
        connection: &Arc<Client>,
    ) -> Option<Arc<Client>> {
        // Also where it shares another: the session of the protocol is in use.
        let id = headers.get(PROTOCOL_SESSION).and_then(|id| id.to_str().ok());
        let own = id.and_then(|id| self.used(&Key::Protocol(id.into())));
        match headers.get(SHARED_SESSION) {
            Some(name) => {
                let name = name.to_str().ok().filter(|name| is_name(name))?;
                Some(self.shared(name))
            }
            None => Some(own.unwrap_or_else(|| connection.clone())),
        }
    }

    fn shared(&self, name: &str) -> Arc<Client> {
        let key = Key::Shared(name.to_owned());
        self.used(&key).unwrap_or_else(|| self.begin(key))
    }

    fn used(&self, key: &Key) -> Option<Arc<Client>> {
        let mut clients = self.lock();
        let known = clients.get_mut(key)?;
        known.used = Instant::now();
        Some(known.client.clone())
    }

    /// Begins a session; the one that has been idle for longest makes room for it.
    fn begin(&self, key: Key) -> Arc<Client> {
        let client = Arc::new(Client::default());
        let mut clients = self.lock();
        let oldest = (clients.len() >= MAX_SESSIONS).then(|| {
            let by_age = clients.iter().min_by_key(|(_, known)| (!known.is_idle(), known.used));
            by_age.map(|(key, _)| key.clone())
        });
        let ended = oldest.flatten().and_then(|key| clients.remove_entry(&key));
        clients.insert(key, Known { client: client.clone(), used: Instant::now() });
        drop(clients);
        self.end(ended);
        client
    }

    /// Ends what was not used for too long, now and from time to time.
    pub(super) async fn sweep(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            self.end_idle(Instant::now());
        }
    }

    fn end_idle(&self, now: Instant) {
        let mut clients = self.lock();
        for known in clients.values_mut().filter(|known| !known.is_idle()) {
            known.used = now;
        }
        let is_over = |known: &Known| now.duration_since(known.used) >= MAX_IDLE;
        let ended: Vec<_> = clients.extract_if(|_, known| is_over(known)).collect();
        drop(clients);
        self.end(ended);
    }

    /// Ends clients: the calls that they still make, and the sessions of the protocol that they were known by.
    fn end(&self, ended: impl IntoIterator<Item = (Key, Known)>) {
        for (key, known) in ended {
            known.client.calls().end();
            if let Key::Protocol(id) = key {
                let protocol = self.protocol.clone();
                // A session that is gone already needs no end.
                tokio::spawn(async move { drop(protocol.close_session(&id).await) });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_fit)
}

/// The protocol's sessions are those of its own manager; what is added is the client of each.
impl SessionManager for Sessions {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.protocol.create_session().await?;
        self.begin(Key::Protocol(id.clone()));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.protocol.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        // What was ended here is over, even if the protocol's own manager does not know it yet.
        let is_known = self.lock().contains_key(&Key::Protocol(id.clone()));
        Ok(is_known && self.protocol.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let ended = self.lock().remove(&Key::Protocol(id.clone()));
        if let Some(known) = ended {
            known.client.calls().end();
        }
        self.protocol.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.protocol.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.protocol.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.protocol.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.protocol.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_runtime(test: impl AsyncFnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(test());
    }

    fn headers(name: &str, value: &str) -> HeaderMap {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_request_belongs_to_its_session_its_name_or_its_connection() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let (here, there) = (Arc::new(Client::default()), Arc::new(Client::default()));
            let client = |headers: &HeaderMap, connection| sessions.client(headers, connection);
            let none = HeaderMap::new();
            assert!(Arc::ptr_eq(&client(&none, &here).unwrap(), &here));
            let shared = headers("toolcrib-session", "work");
            let one = client(&shared, &here).unwrap();
            assert!(Arc::ptr_eq(&one, &client(&shared, &there).unwrap()));
            assert!(!Arc::ptr_eq(&one, &client(&headers("toolcrib-session", "w"), &here).unwrap()));
            let (id, _transport) = sessions.create_session().await.unwrap();
            let own = headers("mcp-session-id", &id);
            let known = client(&own, &here).unwrap();
            assert!(!Arc::ptr_eq(&known, &here) && !Arc::ptr_eq(&known, &one));
            assert!(Arc::ptr_eq(&known, &client(&own, &there).unwrap()));
            let guessed = headers("mcp-session-id", "guessed");
            assert!(Arc::ptr_eq(&client(&guessed, &here).unwrap(), &here));
            for bad in ["", "a b", &"x".repeat(65), "ä"] {
                assert!(client(&headers("toolcrib-session", bad), &here).is_none(), "{bad}");
            }
        });
    }

    #[test]
    fn the_longest_idle_session_makes_room_and_one_in_use_does_not() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let name = |number: usize| Key::Shared(number.to_string());
            let used = sessions.begin(name(0));
            for number in 1..=2 * MAX_SESSIONS {
                sessions.begin(name(number));
            }
            let known = sessions.lock().len();
            assert_eq!(known, MAX_SESSIONS);
            assert!(Arc::ptr_eq(&sessions.used(&name(0)).unwrap(), &used));
            assert!(sessions.used(&name(2)).is_none());
            assert!(sessions.used(&name(2 * MAX_SESSIONS)).is_some());
        });
    }

    #[test]
    fn a_session_that_is_not_used_ends() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let (id, _transport) = sessions.create_session().await.unwrap();
            let used = sessions.begin(Key::Shared("used".to_owned()));
            let later = Instant::now() + MAX_IDLE;
            sessions.end_idle(later - SWEEP);
            assert!(sessions.used(&Key::Protocol(id.clone())).is_some());
            sessions.end_idle(later + MAX_IDLE);
            assert!(sessions.used(&Key::Protocol(id.clone())).is_none());
            assert!(sessions.used(&Key::Shared("used".to_owned())).is_some());
            drop(used);
            assert!(!sessions.has_session(&id).await.unwrap());
            while sessions.protocol.has_session(&id).await.unwrap() {
                tokio::task::yield_now().await;
            }
        });
    }
}
