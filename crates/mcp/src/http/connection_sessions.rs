//! The sessions of one connection: a client without a session of its own has one in each workspace that it uses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::session_count::Owner;
use super::sessions::{NoClient, Sessions};
use crate::client_session::Client;

/// The number of the last connection.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The sessions of a connection. They end when it is dropped.
pub(super) struct ConnectionSessions {
    number: u64,
    /// Where it has a session.
    used: Mutex<Vec<Weak<Sessions>>>,
}

impl ConnectionSessions {
    /// A connection without sessions.
    pub(super) fn new() -> Self {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        ConnectionSessions { number, used: Mutex::default() }
    }

    /// The client of this connection among these sessions.
    pub(super) fn client(
        &self,
        sessions: &Arc<Sessions>,
        owner: &Owner,
    ) -> Result<Arc<Client>, NoClient> {
        let mut used = self.used.lock();
        let is_this = |one: &Weak<Sessions>| std::ptr::eq(one.as_ptr(), Arc::as_ptr(sessions));
        if !used.iter().any(is_this) {
            used.retain(|one| one.strong_count() > 0);
            used.push(Arc::downgrade(sessions));
        }
        sessions.of_connection(self.number, owner)
    }
}

impl Drop for ConnectionSessions {
    fn drop(&mut self) {
        for sessions in self.used.get_mut().drain(..).filter_map(|one| one.upgrade()) {
            sessions.end_connection(self.number);
        }
    }
}
