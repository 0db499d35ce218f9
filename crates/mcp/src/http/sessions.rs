//! Assigns requests to clients, and ends idle sessions.
//!
//! A client is identified by the protocol session that it started with `initialize`, or by the name of a session
//! that it shares with others. A request with neither, such as those of protocol version 2026-07-28, belongs to its
//! connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_core::Stream;
use hyper::header::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionManager};

use crate::client_session::Client;

/// The header for sharing a session: clients that send the same name share one.
pub(super) const SHARED_SESSION: HeaderName = HeaderName::from_static("toolcrib-session");

/// The header of the protocol's own sessions.
const PROTOCOL_SESSION: &str = "mcp-session-id";

/// More sessions than the clients of one machine need. One more ends the session with the longest idle time.
const MAX_SESSIONS: usize = 128;

/// A session ends after this idle time, and its commands with it.
const MAX_IDLE: Duration = Duration::from_secs(60 * 60);

/// The interval of the checks for idle sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// The maximum length of a session name.
const MAX_NAME_CHARS: usize = 64;

/// The sessions of a server.
pub(super) struct Sessions {
    protocol: Arc<LocalSessionManager>,
    clients: Mutex<HashMap<Key, KnownClient>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Protocol(SessionId),
    Shared(String),
}

/// A client with a key. It is in use while anything else refers to it: an unfinished request or a running call.
struct KnownClient {
    client: Arc<Client>,
    used: Instant,
}

impl KnownClient {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.client) == 1
    }
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut protocol = LocalSessionManager::default();
        // Sessions end only by the rules of this module.
        protocol.session_config.keep_alive = None;
        Sessions { protocol: Arc::new(protocol), clients: Mutex::default() }
    }

    /// The client of a request. Without a session it is that of the connection. `None` if the session name is
    /// invalid.
    pub(super) fn client(
        &self,
        headers: &HeaderMap,
        connection: &Arc<Client>,
    ) -> Option<Arc<Client>> {
        // This marks the protocol session as used, even if the request names a shared session.
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
        let mut clients = self.clients.lock();
        let known = clients.get_mut(key)?;
        known.used = Instant::now();
        Some(known.client.clone())
    }

    /// Starts a session. If there are too many, the one with the longest idle time ends.
    fn begin(&self, key: Key) -> Arc<Client> {
        let client = Arc::new(Client::default());
        let mut clients = self.clients.lock();
        let oldest = (clients.len() >= MAX_SESSIONS).then(|| {
            let by_age = clients.iter().min_by_key(|(_, known)| (!known.is_idle(), known.used));
            by_age.map(|(key, _)| key.clone())
        });
        let ended = oldest.flatten().and_then(|key| clients.remove_entry(&key));
        clients.insert(key, KnownClient { client: client.clone(), used: Instant::now() });
        drop(clients);
        self.end(ended);
        client
    }

    /// Ends idle sessions periodically.
    pub(super) async fn sweep(&self) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            self.end_idle(Instant::now());
        }
    }

    fn end_idle(&self, now: Instant) {
        let mut clients = self.clients.lock();
        for known in clients.values_mut().filter(|known| !known.is_idle()) {
            known.used = now;
        }
        let is_over = |known: &KnownClient| now.duration_since(known.used) >= MAX_IDLE;
        let ended: Vec<_> = clients.extract_if(|_, known| is_over(known)).collect();
        drop(clients);
        self.end(ended);
    }

    /// Ends clients: their running calls and their protocol sessions.
    fn end(&self, ended: impl IntoIterator<Item = (Key, KnownClient)>) {
        for (key, known) in ended {
            known.client.calls().end();
            if let Key::Protocol(id) = key {
                let protocol = self.protocol.clone();
                // The session may have ended already.
                tokio::spawn(async move { drop(protocol.close_session(&id).await) });
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.bytes().all(is_fit)
}

/// Delegates to the protocol's own session manager, and adds the client of each session.
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
        // A session that ended here is gone, even if the protocol's manager still has it.
        let is_known = self.clients.lock().contains_key(&Key::Protocol(id.clone()));
        Ok(is_known && self.protocol.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let ended = self.clients.lock().remove(&Key::Protocol(id.clone()));
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
    fn the_longest_idle_session_is_ended_to_make_room() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let name = |number: usize| Key::Shared(number.to_string());
            let used = sessions.begin(name(0));
            for number in 1..=2 * MAX_SESSIONS {
                sessions.begin(name(number));
            }
            let known = sessions.clients.lock().len();
            assert_eq!(known, MAX_SESSIONS);
            assert!(Arc::ptr_eq(&sessions.used(&name(0)).unwrap(), &used));
            assert!(sessions.used(&name(2)).is_none());
            assert!(sessions.used(&name(2 * MAX_SESSIONS)).is_some());
        });
    }

    #[test]
    fn an_unused_session_ends() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let (id, _transport) = sessions.create_session().await.unwrap();
            let used = sessions.begin(Key::Shared("used".to_owned()));
            let later = Instant::now() + MAX_IDLE;
            sessions.end_idle(later - SWEEP_INTERVAL);
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
