//! What the calls of one client have in common: its session, and so its working directory, exported variables,
//! the files it has read and its background commands.

use std::sync::{Arc, OnceLock};

use hyper::http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::runtime::Handle;
use toolcrib::{Runtime, Session};

use crate::running_calls::Calls;

/// One client. Its session begins with its first call, and ends when nothing refers to the client any more.
#[derive(Debug, Default)]
pub(crate) struct Client {
    session: OnceLock<Session>,
    calls: Calls,
}

impl Client {
    /// The client that a request belongs to, as the HTTP transport has found it; nothing on other transports.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Arc<Client>> {
        context.extensions.get::<Parts>()?.extensions.get::<Arc<Client>>().cloned()
    }

    pub(crate) fn session(&self, runtime: &Runtime) -> &Session {
        self.session.get_or_init(|| runtime.session())
    }

    /// Its calls that run.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // To end a session is to end its commands: that can take a moment, and messages must not wait for it.
        if let (Some(session), Ok(threads)) = (self.session.take(), Handle::try_current()) {
            threads.spawn_blocking(move || drop(session));
        }
    }
}
