//! How many connections there are. A connection that has not brought the token yet is one of a few that are
//! replaced, the oldest first, as others come: they cannot keep a client with the token waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Connections that have not brought the token. One more closes the oldest of them.
const MAX_UNAUTHENTICATED: usize = 128;

/// Connections that have brought the token. One more closes the one that has been idle for longest.
const MAX_AUTHENTICATED: usize = 128;

/// A connection that has not brought the token by then is closed. A client on this machine sends it at once.
const TIME_TO_AUTHENTICATE: Duration = Duration::from_secs(5);

/// All connections of a server.
#[derive(Default)]
pub(super) struct Connections {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    /// The oldest first.
    unauthenticated: VecDeque<Slot>,
    /// The one that was used last is at the end.
    authenticated: Vec<Slot>,
}

struct Slot {
    id: u64,
    /// Requests that are being answered.
    requests: usize,
    close: Arc<Notify>,
}

/// One connection; it gives up its place when dropped.
pub(super) struct Connection {
    id: u64,
    close: Arc<Notify>,
    all: Arc<Connections>,
}

/// A request that is being answered on a connection, until this is dropped.
pub(super) struct Busy {
    connection: Arc<Connection>,
}

/// Every place is taken by a connection with a request under way.
#[derive(Debug, PartialEq)]
pub(super) struct Full;

impl Connections {
    /// Takes in a new connection.
    pub(super) fn open(self: &Arc<Self>) -> Arc<Connection> {
        let mut state = self.lock();
        if state.unauthenticated.len() >= MAX_UNAUTHENTICATED {
            state.close_oldest_unauthenticated();
        }
        state.last += 1;
        let (id, close) = (state.last, Arc::new(Notify::new()));
        state.unauthenticated.push_back(Slot { id, requests: 0, close: close.clone() });
        drop(state);
        Arc::new(Connection { id, close, all: self.clone() })
    }

    /// Makes room where the system has none for a further connection.
    pub(super) fn close_oldest_unauthenticated(&self) {
        self.lock().close_oldest_unauthenticated();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_oldest_unauthenticated(&mut self) {
        if let Some(slot) = self.unauthenticated.pop_front() {
            slot.close.notify_one();
        }
    }

    /// Closes the connection that has been idle for longest, if there are too many.
    fn make_room(&mut self) -> Result<(), Full> {
        if self.authenticated.len() < MAX_AUTHENTICATED {
            return Ok(());
        }
        let idle = self.authenticated.iter().position(|slot| slot.requests == 0).ok_or(Full)?;
        self.authenticated.remove(idle).close.notify_one();
        Ok(())
    }
}

impl Connection {
    /// Notes a request that brought the token.
    pub(super) fn begin_request(self: &Arc<Self>) -> Result<Busy, Full> {
        let mut state = self.all.lock();
        let known = state.authenticated.iter().position(|slot| slot.id == self.id);
        let mut slot = match known {
            Some(place) => state.authenticated.remove(place),
            None => {
                state.make_room()?;
                state.unauthenticated.retain(|slot| slot.id != self.id);
                Slot { id: self.id, requests: 0, close: self.close.clone() }
            }
        };
        slot.requests += 1;
        state.authenticated.push(slot);
        drop(state);
        Ok(Busy { connection: self.clone() })
    }

    /// Waits until the connection is to be closed: for others, or because it did not bring the token in time.
    pub(super) async fn to_be_closed(&self) {
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
        self.all.lock().authenticated.iter().any(|slot| slot.id == self.id)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        state.unauthenticated.retain(|slot| slot.id != self.id);
        state.authenticated.retain(|slot| slot.id != self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.connection.all.lock();
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
    fn the_oldest_without_the_token_makes_room() {
        let all = Arc::new(Connections::default());
        let open: Vec<_> = (0..=MAX_UNAUTHENTICATED).map(|_| all.open()).collect();
        assert!(is_closed(&open[0]));
        assert!(open[1..].iter().all(|connection| !is_closed(connection)));
        drop(open);
        assert!(all.lock().unauthenticated.is_empty());
    }

    #[test]
    fn a_connection_with_the_token_is_closed_only_when_idle() {
        let all = Arc::new(Connections::default());
        let open: Vec<_> = (0..MAX_AUTHENTICATED).map(|_| all.open()).collect();
        let mut busy: Vec<_> = open.iter().map(|open| open.begin_request().unwrap()).collect();
        // Connections without the token take nothing from those that have it.
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
        assert_eq!(all.lock().authenticated[0].requests, 1);
        drop(two);
        assert_eq!(all.lock().authenticated[0].requests, 0);
    }
}
