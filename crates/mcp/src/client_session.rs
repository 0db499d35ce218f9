//! The state that the calls of one client share: its session with working directory, exported variables, read files
//! and background commands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hyper::header::HeaderName;
use hyper::http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::runtime::Handle;
use toolcrib::{Runtime, Session};

use crate::running_calls::RunningCalls;

/// The header with which clients share a session.
pub(crate) const SHARED_SESSION: HeaderName = HeaderName::from_static("toolcrib-session");

/// One client. Its session starts with the first call, and ends when the last reference is dropped.
#[derive(Debug, Default)]
pub(crate) struct Client {
    session: OnceLock<Session>,
    calls: RunningCalls,
    /// Whether it declines questions without showing them.
    cannot_ask: AtomicBool,
}

impl Client {
    /// The client of a request, as found by the HTTP transport. `None` on other transports.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Arc<Client>> {
        context.extensions.get::<Parts>()?.extensions.get::<Arc<Client>>().cloned()
    }

    /// The name that a client gives its session, with which it has the same session again.
    pub(crate) fn session_name(context: &RequestContext<RoleServer>) -> Option<&str> {
        context.extensions.get::<Parts>()?.headers.get(SHARED_SESSION)?.to_str().ok()
    }

    pub(crate) fn session(&self, runtime: &Runtime) -> &Session {
        self.session.get_or_init(|| runtime.session())
    }

    /// Remembers that it declines questions without showing them.
    pub(crate) fn set_cannot_ask(&self) {
        self.cannot_ask.store(true, Ordering::Relaxed);
    }

    /// Whether it declines questions without showing them.
    pub(crate) fn cannot_ask(&self) -> bool {
        self.cannot_ask.load(Ordering::Relaxed)
    }

    /// Its running calls.
    pub(crate) fn calls(&self) -> &RunningCalls {
        &self.calls
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Ending a session ends its commands, which can take a moment. Messages must not wait for it.
        if let (Some(session), Ok(threads)) = (self.session.take(), Handle::try_current()) {
            threads.spawn_blocking(move || drop(session));
        }
    }
}
