//! Limits the number of connections. Connections without the token are few and replaced, the oldest first, so they
//! cannot block a client with the token.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The maximum number of connections without the token. One more closes the oldest.
const MAX_UNAUTHENTICATED: usize = 128;

/// The default maximum number of connections with the token. One more closes the one with the longest idle time.
const MAX_AUTHENTICATED: usize = 128;

/// A connection that has not sent the token within this time is closed. A local client sends it at once.
const TIME_TO_AUTHENTICATE: Duration = Duration::from_secs(5);

/// All connections of a server.
pub struct Connections {
    max_authenticated: usize,
    state: Mutex<State>,
}

impl Default for Connections {
    fn default() -> Self {
        Connections::with_max_authenticated(MAX_AUTHENTICATED)
    }
}

#[derive(Default)]
struct State {
    last: u64,
    /// Oldest first.
    unauthenticated: VecDeque<Slot>,
    /// Last used at the end.
    authenticated: Vec<Slot>,
}

struct Slot {
    id: u64,
    /// The number of unfinished requests.
    requests: usize,
    close: Arc<Notify>,
}

/// One connection. Dropping it frees its slot.
pub struct Connection {
    id: u64,
    close: Arc<Notify>,
    all: Arc<Connections>,
}

/// An unfinished request on a connection, until dropped.
pub struct UnfinishedRequest {
    connection: Arc<Connection>,
}

/// Every slot belongs to a connection with an unfinished request.
#[derive(Debug, PartialEq)]
pub struct Full;

impl Connections {
    /// No connections yet, and at most this many with the token.
    pub fn with_max_authenticated(max_authenticated: usize) -> Self {
        Connections { max_authenticated, state: Mutex::default() }
    }

    /// Adds a new connection.
    pub fn open(self: &Arc<Self>) -> Arc<Connection> {
        let mut state = self.state.lock();
        if state.unauthenticated.len() >= MAX_UNAUTHENTICATED {
            state.close_oldest_unauthenticated();
        }
        state.last += 1;
        let (id, close) = (state.last, Arc::new(Notify::new()));
        state.unauthenticated.push_back(Slot { id, requests: 0, close: close.clone() });
        drop(state);
        Arc::new(Connection { id, close, all: self.clone() })
    }

    /// Frees a descriptor if the system has none left.
    pub fn close_oldest_unauthenticated(&self) {
        self.state.lock().close_oldest_unauthenticated();
    }
}

impl State {
    fn close_oldest_unauthenticated(&mut self) {
        if let Some(slot) = self.unauthenticated.pop_front() {
            slot.close.notify_one();
        }
    }

    /// Closes the connection with the longest idle time, if there are too many.
    fn make_room(&mut self, max: usize) -> Result<(), Full> {
        if self.authenticated.len() < max {
            return Ok(());
        }
        let idle = self.authenticated.iter().position(|slot| slot.requests == 0).ok_or(Full)?;
        self.authenticated.remove(idle).close.notify_one();
        Ok(())
    }
}

impl Connection {
    /// Registers a request with the token.
    pub fn begin_request(self: &Arc<Self>) -> Result<UnfinishedRequest, Full> {
        let mut state = self.all.state.lock();
        let known = state.authenticated.iter().position(|slot| slot.id == self.id);
        let mut slot = match known {
            Some(place) => state.authenticated.remove(place),
            None => {
                state.make_room(self.all.max_authenticated)?;
                state.unauthenticated.retain(|slot| slot.id != self.id);
                Slot { id: self.id, requests: 0, close: self.close.clone() }
            }
        };
        slot.requests += 1;
        state.authenticated.push(slot);
        drop(state);
        Ok(UnfinishedRequest { connection: self.clone() })
    }

    /// Waits until the connection must be closed: to make room, or because it sent no token in time.
    pub async fn wait_for_close(&self) {
        let closed = self.close.notified();
        tokio::pin!(closed);
        tokio::select! {
            () = &mut closed => return,
            () = tokio::time::sleep(TIME_TO_AUTHENTICATE) => {}
        }
        if self.is_authenticated() {
            closed.await;
        }
    }

    fn is_authenticated(&self) -> bool {
        self.all.state.lock().authenticated.iter().any(|slot| slot.id == self.id)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        state.unauthenticated.retain(|slot| slot.id != self.id);
        state.authenticated.retain(|slot| slot.id != self.id);
    }
}

impl Drop for UnfinishedRequest {
    fn drop(&mut self) {
        let mut state = self.connection.all.state.lock();
        if let Some(place) =
            state.authenticated.iter().position(|slot| slot.id == self.connection.id)
        {
            let mut slot = state.authenticated.remove(place);
            slot.requests -= 1;
            state.authenticated.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(connection: &Connection) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = connection.close.notified() => true,
                () = std::future::ready(()) => false,
            }
        })
    }

    #[test]
    fn the_oldest_connection_without_the_token_is_closed() {
        let all = Arc::new(Connections::default());
        let open: Vec<_> = (0..=MAX_UNAUTHENTICATED).map(|_| all.open()).collect();
        assert!(is_closed(&open[0]));
        assert!(open[1..].iter().all(|connection| !is_closed(connection)));
        drop(open);
        assert!(all.state.lock().unauthenticated.is_empty());
    }

    #[test]
    fn a_connection_with_the_token_is_closed_only_when_idle() {
        let all = Arc::new(Connections::default());
        let open: Vec<_> = (0..MAX_AUTHENTICATED).map(|_| all.open()).collect();
        let mut busy: Vec<_> = open.iter().map(|open| open.begin_request().unwrap()).collect();
        // Connections without the token do not displace those with it.
        let others: Vec<_> = (0..=MAX_UNAUTHENTICATED).map(|_| all.open()).collect();
        assert!(open.iter().all(|connection| !is_closed(connection)));
        let late = others.last().unwrap();
        assert!(matches!(late.begin_request(), Err(Full)));
        drop(busy.remove(5));
        assert!(late.begin_request().is_ok());
        assert!(is_closed(&open[5]));
        assert!(!is_closed(&open[0]));
    }

    #[test]
    fn several_requests_on_a_connection_are_counted() {
        let all = Arc::new(Connections::default());
        let open = all.open();
        let (one, two) = (open.begin_request().unwrap(), open.begin_request().unwrap());
        drop(one);
        assert_eq!(all.state.lock().authenticated[0].requests, 1);
        drop(two);
        assert_eq!(all.state.lock().authenticated[0].requests, 0);
    }
}
