//! Assigns requests to clients, and ends idle sessions.
//!
//! A client is identified by the protocol session that it started with `initialize`, or by the name of a session
//! that it shares with others. A request with neither, such as those of protocol version 2026-07-28, belongs to its
//! connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_core::Stream;
use hyper::header::HeaderMap;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionManager};

use super::connection_sessions::ConnectionSessions;
use super::session_count::{CountedSession, Owner, SessionCount};
use crate::client_session::{Client, SHARED_SESSION};

/// The header of the protocol's own sessions.
const PROTOCOL_SESSION: &str = "mcp-session-id";

/// More sessions in a workspace than the clients of one caller need. One more ends the one with the longest idle time.
const MAX_SESSIONS: usize = 128;

/// A session ends after this idle time, and its commands with it.
const MAX_IDLE: Duration = Duration::from_secs(60 * 60);

/// The interval of the checks for idle sessions.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// The maximum length of a session name.
const MAX_NAME_CHARS: usize = 64;

/// Why a request has no client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoClient {
    /// The name of the shared session is invalid.
    InvalidName,
    /// The session belongs to somebody else.
    OfAnother,
    /// There are too many sessions, and none of the caller's own can end instead.
    TooMany,
}

tokio::task_local! {
    /// The request that is being answered.
    static ANSWERED: Arc<AnsweredRequest>;
}

/// What the protocol does not tell when it starts a session.
struct AnsweredRequest {
    owner: Owner,
    /// The session could not be started.
    has_no_room: AtomicBool,
}

/// Answers a request of an owner: a protocol session that it starts is theirs.
pub(super) async fn answer_for<F: Future>(owner: Owner, answer: F) -> Result<F::Output, NoClient> {
    let request = Arc::new(AnsweredRequest { owner, has_no_room: AtomicBool::new(false) });
    let answer = ANSWERED.scope(request.clone(), answer).await;
    if request.has_no_room.load(Ordering::Relaxed) { Err(NoClient::TooMany) } else { Ok(answer) }
}

/// The sessions of one workspace.
pub(super) struct Sessions {
    protocol: Arc<LocalSessionManager>,
    clients: Mutex<HashMap<Key, KnownClient>>,
    /// The sessions of all workspaces.
    all: Arc<SessionCount>,
    /// Whether sessions of idle connections end, too.
    ends_connections: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Protocol(SessionId),
    /// The names of one owner are not those of another.
    Shared(String, Owner),
    /// A proxy uses one connection for several callers.
    Connection(u64, Owner),
}

/// A client with a key. It is in use while anything else refers to it: an unfinished request or a running call.
struct KnownClient {
    client: Arc<Client>,
    /// Who started it.
    owner: Owner,
    used: Instant,
    /// Counts it while it exists, unless another session has taken its place.
    counted: Option<CountedSession>,
}

impl KnownClient {
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.client) == 1
    }
}

impl Sessions {
    /// The sessions of a server with one workspace.
    pub(super) fn new() -> Self {
        let mut protocol = LocalSessionManager::default();
        // Sessions end only by the rules of this module.
        protocol.session_config.keep_alive = None;
        let (clients, all) = (Mutex::default(), Arc::default());
        Sessions { protocol: Arc::new(protocol), clients, all, ends_connections: false }
    }

    /// The sessions of one of several workspaces, or of several callers. `all` counts those of all of them. Sessions of idle
    /// connections end, too: otherwise an open connection would keep its workspaces, and one of a proxy the sessions of
    /// all callers.
    pub(super) fn among(all: Arc<SessionCount>) -> Self {
        Sessions { all, ends_connections: true, ..Sessions::new() }
    }

    /// Checks the sessions that a request names, before its body is read. Returns the name of the shared one.
    pub(super) fn check<'a>(
        &self,
        headers: &'a HeaderMap,
        owner: &Owner,
    ) -> Result<Option<&'a str>, NoClient> {
        if self.is_of_another(headers, owner) {
            return Err(NoClient::OfAnother);
        }
        let Some(name) = headers.get(SHARED_SESSION) else { return Ok(None) };
        let name = name.to_str().ok().filter(|name| is_name(name));
        name.ok_or(NoClient::InvalidName).map(Some)
    }

    /// The client of a request. Without a session it is that of the connection. A new one is started here, so the request must
    /// have been checked.
    pub(super) fn client(
        self: &Arc<Self>,
        headers: &HeaderMap,
        connection: &ConnectionSessions,
        owner: &Owner,
    ) -> Result<Arc<Client>, NoClient> {
        let shared = self.check(headers, owner)?;
        // This marks the protocol session as used, even if the request names a shared session.
        let own = protocol_session(headers).and_then(|key| self.used(&key));
        match (shared, own) {
            (Some(name), _) => self.shared(name, owner),
            (None, Some(own)) => Ok(own),
            (None, None) => connection.client(self, owner),
        }
    }

    /// Whether the protocol session of a request exists.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        protocol_session(headers).is_some_and(|key| self.clients.lock().contains_key(&key))
    }

    fn is_of_another(&self, headers: &HeaderMap, owner: &Owner) -> bool {
        let Some(key) = protocol_session(headers) else { return false };
        self.clients.lock().get(&key).is_some_and(|known| known.owner != *owner)
    }

    /// The client of a connection.
    pub(super) fn of_connection(
        &self,
        number: u64,
        owner: &Owner,
    ) -> Result<Arc<Client>, NoClient> {
        self.used_or_begun(Key::Connection(number, owner.clone()), owner)
    }

    /// Ends the sessions of a connection that was closed.
    pub(super) fn end_connection(&self, number: u64) {
        let is_of_it = |key: &Key| matches!(key, Key::Connection(other, _) if *other == number);
        let ended: Vec<_> = self.clients.lock().extract_if(|key, _| is_of_it(key)).collect();
        drop(ended);
    }

    fn shared(&self, name: &str, owner: &Owner) -> Result<Arc<Client>, NoClient> {
        self.used_or_begun(Key::Shared(name.to_owned(), owner.clone()), owner)
    }

    fn used_or_begun(&self, key: Key, owner: &Owner) -> Result<Arc<Client>, NoClient> {
        match self.used(&key) {
            Some(client) => Ok(client),
            None => self.begin(key, owner),
        }
    }

    fn used(&self, key: &Key) -> Option<Arc<Client>> {
        let mut clients = self.clients.lock();
        let known = clients.get_mut(key)?;
        known.used = Instant::now();
        Some(known.client.clone())
    }

    /// Starts a session. If there are too many, one of the same owner ends, the one with the longest idle time: nobody can
    /// end the sessions of others.
    fn begin(&self, key: Key, owner: &Owner) -> Result<Arc<Client>, NoClient> {
        // The connections are limited elsewhere.
        let is_limited = |key: &Key| !matches!(key, Key::Connection(..));
        let mut clients = self.clients.lock();
        let own = || clients.iter().filter(|(_, known)| known.owner == *owner);
        let has_many =
            is_limited(&key) && own().filter(|(key, _)| is_limited(key)).count() >= MAX_SESSIONS;
        let oldest = if has_many || self.all.is_full(owner) {
            // Work goes on if it is the server that is full.
            let can_end = |key: &Key, known: &KnownClient| {
                if has_many { is_limited(key) } else { known.is_idle() }
            };
            let can_end = own().filter(|(key, known)| can_end(key, known));
            let by_age = can_end.min_by_key(|(_, known)| (!known.is_idle(), known.used));
            by_age.map(|(key, _)| key.clone())
        } else {
            None
        };
        let mut ended = oldest.and_then(|key| clients.remove_entry(&key));
        let place = ended.as_mut().and_then(|(_, known)| known.counted.take());
        let Some(counted) = place.or_else(|| self.all.add(owner)) else {
            return Err(NoClient::TooMany);
        };
        let client: Arc<Client> = Arc::default();
        let (used, owner, counted) = (Instant::now(), owner.clone(), Some(counted));
        clients.insert(key, KnownClient { client: client.clone(), owner, used, counted });
        drop(clients);
        self.end(ended);
        Ok(client)
    }

    /// Ends the sessions that were not used for a long time.
    pub(super) fn end_idle(&self, now: Instant) {
        let ends_connections = self.ends_connections;
        let mut clients = self.clients.lock();
        for known in clients.values_mut().filter(|known| !known.is_idle()) {
            known.used = now;
        }
        let is_over = |key: &Key, known: &KnownClient| {
            now.duration_since(known.used) >= MAX_IDLE
                && (ends_connections || !matches!(key, Key::Connection(..)))
        };
        let ended: Vec<_> = clients.extract_if(|key, known| is_over(key, known)).collect();
        drop(clients);
        self.end(ended);
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.clients.lock().is_empty()
    }

    /// When the session of an owner with the longest idle time was used last. `None` if none is idle.
    pub(super) fn longest_idle(&self, owner: &Owner) -> Option<Instant> {
        let clients = self.clients.lock();
        let idle = clients.values().filter(|known| known.is_idle() && known.owner == *owner);
        idle.map(|known| known.used).min()
    }

    /// Ends the session of an owner with the longest idle time.
    pub(super) fn end_longest_idle(&self, owner: &Owner) {
        let mut clients = self.clients.lock();
        let idle = clients.iter().filter(|(_, known)| known.is_idle() && known.owner == *owner);
        let oldest = idle.min_by_key(|(_, known)| known.used).map(|(key, _)| key.clone());
        let ended = oldest.and_then(|key| clients.remove_entry(&key));
        drop(clients);
        self.end(ended);
    }

    /// Ends all sessions and their running calls.
    pub(super) fn end_all(&self) {
        let ended = std::mem::take(&mut *self.clients.lock());
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

/// The protocol session that a request names.
fn protocol_session(headers: &HeaderMap) -> Option<Key> {
    Some(Key::Protocol(headers.get(PROTOCOL_SESSION)?.to_str().ok()?.into()))
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
        let request = ANSWERED.try_with(Arc::clone).ok();
        let owner = request.as_ref().and_then(|request| request.owner.clone());
        if self.begin(Key::Protocol(id.clone()), &owner).is_ok() {
            return Ok((id, transport));
        }
        if let Some(request) = request {
            request.has_no_room.store(true, Ordering::Relaxed);
        }
        self.protocol.close_session(&id).await?;
        Err(LocalSessionManagerError::SessionNotFound(id))
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
    use hyper::header::HeaderName;
    use toolcrib::Principal;

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
            let sessions = Arc::new(Sessions::new());
            let (here, there) = (ConnectionSessions::new(), ConnectionSessions::new());
            let client =
                |headers: &HeaderMap, connection| sessions.client(headers, connection, &None);
            let none = HeaderMap::new();
            let of_here = client(&none, &here).unwrap();
            assert!(Arc::ptr_eq(&client(&none, &here).unwrap(), &of_here));
            assert!(!Arc::ptr_eq(&client(&none, &there).unwrap(), &of_here));
            let shared = headers("toolcrib-session", "work");
            let one = client(&shared, &here).unwrap();
            assert!(Arc::ptr_eq(&one, &client(&shared, &there).unwrap()));
            assert!(!Arc::ptr_eq(&one, &client(&headers("toolcrib-session", "w"), &here).unwrap()));
            let (id, _transport) = sessions.create_session().await.unwrap();
            let own = headers("mcp-session-id", &id);
            let known = client(&own, &here).unwrap();
            assert!(!Arc::ptr_eq(&known, &of_here) && !Arc::ptr_eq(&known, &one));
            assert!(Arc::ptr_eq(&known, &client(&own, &there).unwrap()));
            let guessed = headers("mcp-session-id", "guessed");
            assert!(Arc::ptr_eq(&client(&guessed, &here).unwrap(), &of_here));
            for bad in ["", "a b", &"x".repeat(65), "ä"] {
                let found = client(&headers("toolcrib-session", bad), &here);
                assert_eq!(found.err(), Some(NoClient::InvalidName), "{bad}");
            }
        });
    }

    #[test]
    fn a_connection_has_a_session_of_its_own_in_each_workspace() {
        with_runtime(async || {
            let all = Arc::<SessionCount>::default();
            let (one, two) = (Sessions::among(Arc::clone(&all)), Sessions::among(Arc::clone(&all)));
            let (one, two) = (Arc::new(one), Arc::new(two));
            let (here, none) = (ConnectionSessions::new(), HeaderMap::new());
            let in_one = one.client(&none, &here, &None).unwrap();
            let in_two = two.client(&none, &here, &None).unwrap();
            assert!(!Arc::ptr_eq(&in_one, &in_two));
            // A session of one workspace is not one of another.
            let (id, _transport) = one.create_session().await.unwrap();
            assert!(!two.has_session(&id).await.unwrap());
            assert!(Arc::ptr_eq(
                &two.client(&headers("mcp-session-id", &id), &here, &None).unwrap(),
                &in_two
            ));
            assert_eq!(all.total(), 3);
            drop((in_one, in_two, here));
            assert!(two.is_empty() && !one.is_empty());
            one.end_all();
            assert_eq!(all.total(), 0);
        });
    }

    #[test]
    fn the_longest_idle_session_is_ended_to_make_room() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let name = |number: usize| Key::Shared(number.to_string(), None);
            let used = sessions.begin(name(0), &None).unwrap();
            for number in 1..=2 * MAX_SESSIONS {
                sessions.begin(name(number), &None).unwrap();
            }
            let known = sessions.clients.lock().len();
            assert_eq!(known, MAX_SESSIONS);
            assert!(Arc::ptr_eq(&sessions.used(&name(0)).unwrap(), &used));
            assert!(sessions.used(&name(2)).is_none());
            assert!(sessions.used(&name(2 * MAX_SESSIONS)).is_some());
        });
    }

    #[test]
    fn an_owner_cannot_end_the_sessions_of_others() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let owner = |subject: &str| -> Owner {
                let (issuer, subject) = ("i".to_owned(), subject.to_owned());
                Some(Arc::new(Principal { issuer, subject }))
            };
            let (alice, bob) = (owner("alice"), owner("bob"));
            drop(sessions.shared("old", &alice).unwrap());
            let busy: Vec<_> = (0..2 * MAX_SESSIONS)
                .map(|number| sessions.shared(&number.to_string(), &bob).unwrap())
                .collect();
            assert!(sessions.used(&Key::Shared("old".to_owned(), alice.clone())).is_some());
            assert!(sessions.used(&Key::Shared("0".to_owned(), bob.clone())).is_none());
            let known = sessions.clients.lock().len();
            assert_eq!(known, MAX_SESSIONS + 1);
            // Also if many callers fill the server, and whether their sessions are idle or not.
            for number in 0.. {
                let other = owner(&number.to_string());
                if (0..100).any(|name| sessions.shared(&name.to_string(), &other).is_err()) {
                    break;
                }
            }
            let carol = owner("carol");
            assert_eq!(sessions.shared("new", &carol).err(), Some(NoClient::TooMany));
            let answered = answer_for(carol.clone(), sessions.create_session()).await;
            assert_eq!(answered.err(), Some(NoClient::TooMany));
            assert_eq!(sessions.of_connection(1, &carol).err(), Some(NoClient::TooMany));
            assert!(sessions.used(&Key::Shared("0".to_owned(), owner("0"))).is_some());
            // Who has an idle session can have another instead, and nobody else loses one.
            assert!(sessions.shared("new", &bob).is_ok(), "bob has {MAX_SESSIONS}");
            assert!(sessions.shared("new", &alice).is_ok());
            assert!(sessions.used(&Key::Shared("old".to_owned(), alice)).is_none());
            drop(busy);
        });
    }

    #[test]
    fn an_unused_session_ends() {
        with_runtime(async || {
            let sessions = Sessions::new();
            let (id, _transport) = sessions.create_session().await.unwrap();
            let used = sessions.begin(Key::Shared("used".to_owned(), None), &None).unwrap();
            sessions.of_connection(1, &None).unwrap();
            let later = Instant::now() + MAX_IDLE;
            sessions.end_idle(later - SWEEP_INTERVAL);
            assert!(sessions.used(&Key::Protocol(id.clone())).is_some());
            sessions.end_idle(later + MAX_IDLE);
            assert!(sessions.used(&Key::Protocol(id.clone())).is_none());
            assert!(sessions.used(&Key::Shared("used".to_owned(), None)).is_some());
            assert!(
                sessions.used(&Key::Connection(1, None)).is_some(),
                "it ends with its connection"
            );
            drop(used);
            assert!(!sessions.has_session(&id).await.unwrap());
            while sessions.protocol.has_session(&id).await.unwrap() {
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn a_session_is_used_by_its_owner_only() {
        with_runtime(async || {
            let sessions = Arc::new(Sessions::new());
            let owner = |subject: &str, issuer: &str| -> Owner {
                let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
                Some(Arc::new(Principal { issuer, subject }))
            };
            let (alice, bob) = (owner("alice", "https://i"), owner("bob", "https://i"));
            let here = ConnectionSessions::new();
            let client =
                |headers: &HeaderMap, owner: &Owner| sessions.client(headers, &here, owner);
            // One connection, as of a proxy.
            let none = HeaderMap::new();
            let of_alice = client(&none, &alice).unwrap();
            assert!(Arc::ptr_eq(&of_alice, &client(&none, &owner("alice", "https://i")).unwrap()));
            assert!(!Arc::ptr_eq(&of_alice, &client(&none, &bob).unwrap()));
            assert!(!Arc::ptr_eq(&of_alice, &client(&none, &owner("alice", "https://j")).unwrap()));
            // One name.
            let shared = headers("toolcrib-session", "work");
            let of_alice = client(&shared, &alice).unwrap();
            assert!(!Arc::ptr_eq(&of_alice, &client(&shared, &bob).unwrap()));
            assert!(Arc::ptr_eq(&of_alice, &client(&shared, &alice).unwrap()));
            // The ID of a protocol session.
            let started = answer_for(alice.clone(), sessions.create_session()).await;
            let (id, _transport) = started.unwrap().unwrap();
            let own = headers("mcp-session-id", &id);
            assert!(client(&own, &alice).is_ok());
            for other in [&bob, &owner("alice", "https://j"), &None] {
                assert_eq!(client(&own, other).err(), Some(NoClient::OfAnother));
            }
            let mut both = own;
            both.extend(shared);
            assert_eq!(client(&both, &bob).err(), Some(NoClient::OfAnother));
            drop(here);
            let left = sessions.clients.lock().len();
            assert_eq!(left, 3, "those of the connection ended with it");
        });
    }
}
