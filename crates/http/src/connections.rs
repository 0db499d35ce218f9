//! Limits the number of connections. Connections without the token are few and replaced, the oldest first, so they
//! cannot block a client with the token.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The maximum number of connections without the token. One more closes the oldest.
const MAX_UNAUTHENTICATED: usize = 128;

/// The maximum number of connections of one owner with a token. One more closes the one with the longest idle time.
const MAX_OF_OWNER: usize = 128;

/// A connection that has not sent the token within this time is closed. A local client sends it at once.
const TIME_TO_AUTHENTICATE: Duration = Duration::from_secs(5);

/// All connections of a server.
pub struct Connections {
    max_authenticated: usize,
    state: Mutex<State>,
}

impl Default for Connections {
    fn default() -> Self {
        Connections::with_max_authenticated(MAX_OF_OWNER)
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
    /// Who made its last request.
    owner: Arc<str>,
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
    /// No connections yet, and at most this many with a token, of all owners together.
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
        let slot = Slot { id, owner: "".into(), requests: 0, close: close.clone() };
        state.unauthenticated.push_back(slot);
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

    /// Closes the connection with the longest idle time, if the owner of a new one has too many. If there are too many in
    /// all, the owner with the most idle connections loses one, so that one owner cannot displace the others.
    fn make_room(&mut self, owner: &str, max: usize) -> Result<(), Full> {
        let of_owner = self.authenticated.iter().filter(|slot| *slot.owner == *owner).count();
        let closed = if of_owner >= MAX_OF_OWNER {
            Some(owner.into())
        } else if self.authenticated.len() >= max {
            Some(self.owner_with_most_idle().ok_or(Full)?)
        } else {
            None
        };
        let Some(closed) = closed else { return Ok(()) };
        let is_idle = |slot: &Slot| slot.requests == 0 && slot.owner == closed;
        let idle = self.authenticated.iter().position(is_idle).ok_or(Full)?;
        self.authenticated.remove(idle).close.notify_one();
        Ok(())
    }

    fn owner_with_most_idle(&self) -> Option<Arc<str>> {
        let mut counts: HashMap<&Arc<str>, usize> = HashMap::new();
        for slot in self.authenticated.iter().filter(|slot| slot.requests == 0) {
            *counts.entry(&slot.owner).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(owner, _)| owner.clone())
    }
}

impl Connection {
    /// Registers a request with a token of this owner.
    pub fn begin_request(self: &Arc<Self>, owner: &str) -> Result<UnfinishedRequest, Full> {
        let mut state = self.all.state.lock();
        let known = state.authenticated.iter().position(|slot| slot.id == self.id);
        let mut slot = match known {
            Some(place) => state.authenticated.remove(place),
            None => {
                state.make_room(owner, self.all.max_authenticated)?;
                state.unauthenticated.retain(|slot| slot.id != self.id);
                Slot { id: self.id, owner: owner.into(), requests: 0, close: self.close.clone() }
            }
        };
        if *slot.owner != *owner {
            slot.owner = owner.into();
        }
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
        let open: Vec<_> = (0..MAX_OF_OWNER).map(|_| all.open()).collect();
        let mut busy: Vec<_> = open.iter().map(|open| open.begin_request("").unwrap()).collect();
        // Connections without the token do not displace those with it.
        let others: Vec<_> = (0..=MAX_UNAUTHENTICATED).map(|_| all.open()).collect();
        assert!(open.iter().all(|connection| !is_closed(connection)));
        let late = others.last().unwrap();
        assert!(matches!(late.begin_request(""), Err(Full)));
        drop(busy.remove(5));
        assert!(late.begin_request("").is_ok());
        assert!(is_closed(&open[5]));
        assert!(!is_closed(&open[0]));
    }

    #[test]
    fn an_owner_cannot_close_the_connections_of_others() {
        let all = Arc::new(Connections::with_max_authenticated(MAX_OF_OWNER + 10));
        let used = |owner: &str| {
            let open = all.open();
            drop(open.begin_request(owner).unwrap());
            open
        };
        let others: Vec<_> = (0..5).map(|_| used("a")).collect();
        let many: Vec<_> = (0..MAX_OF_OWNER + 50).map(|_| used("b")).collect();
        assert!(others.iter().all(|connection| !is_closed(connection)));
        assert_eq!(many.iter().filter(|connection| is_closed(connection)).count(), 50);
        // A third owner finds a place, at the cost of the one with the most.
        let third: Vec<_> = (0..20).map(|_| used("c")).collect();
        assert!(others.iter().chain(&third).all(|connection| !is_closed(connection)));
    }

    #[test]
    fn several_requests_on_a_connection_are_counted() {
        let all = Arc::new(Connections::default());
        let open = all.open();
        let (one, two) = (open.begin_request("").unwrap(), open.begin_request("").unwrap());
        drop(one);
        assert_eq!(all.state.lock().authenticated[0].requests, 1);
        drop(two);
        assert_eq!(all.state.lock().authenticated[0].requests, 0);
    }
}
