//! The running servers: their events go to the page, and its answers to them.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use hyper::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_monitor::{
    Client, GivenAnswer, RequestError, RequestErrorKind, ServerNotice, Servers,
};

use crate::api_error::ApiError;
use crate::live::Live;
use crate::sign_in::Browser;
use crate::visible_browsers::VisibleBrowsers;

/// The connections to all servers of the user.
pub(crate) struct Monitors {
    servers: Arc<OnceLock<Servers>>,
    visible: Arc<VisibleBrowsers>,
}

impl Monitors {
    /// Connects to the servers with sockets in these directories, now and later.
    pub(crate) fn join(directories: &[PathBuf], live: Arc<Live>) -> io::Result<Monitors> {
        let servers: Arc<OnceLock<Servers>> = Arc::default();
        let visible: Arc<VisibleBrowsers> = Arc::default();
        let (joined, browsers) = (Arc::downgrade(&servers), visible.clone());
        let tell = move |server: &str| {
            let is_visible = browsers.any();
            let client = joined.upgrade().and_then(|servers| servers.get()?.client(server));
            if let Some(client) = client.filter(|_| is_visible) {
                // The notices of the server wait until it has announced itself.
                std::thread::spawn(move || client.visible(true));
            }
        };
        let found = Servers::join(directories, move |notice| {
            if let ServerNotice::Joined { server, .. } = &notice {
                tell(server);
            }
            report(&live, notice);
        })?;
        let _ = servers.set(found);
        Ok(Monitors { servers, visible })
    }

    /// Answers a question of a server.
    pub(crate) fn answer(&self, server: &str, answer: GivenAnswer) -> Result<Value, ApiError> {
        Ok(json!(self.client(server)?.answer(answer)?))
    }

    /// Output of the command of a call.
    pub(crate) fn output(&self, call: &str, from: u64) -> Result<Value, ApiError> {
        Ok(json!(self.client_of_call(call)?.output(call, from)?))
    }

    /// Ends the command of a call.
    pub(crate) fn stop(&self, call: &str) -> Result<Value, ApiError> {
        self.client_of_call(call)?.stop(call)?;
        Ok(json!({}))
    }

    /// Reports to all servers whether a viewer is active, after the report of a browser.
    pub(crate) fn visible(&self, browser: Browser, visible: bool) {
        let any = self.visible.report(browser, visible);
        if let Some(servers) = self.servers.get() {
            servers.visible(any);
        }
    }

    /// The server of a call: its id without the number.
    fn client_of_call(&self, call: &str) -> Result<Arc<Client>, ApiError> {
        let server = call.rsplit_once('-').map_or("", |(server, _)| server);
        self.client(server)
    }

    fn client(&self, server: &str) -> Result<Arc<Client>, ApiError> {
        let client = self.servers.get().and_then(|servers| servers.client(server));
        client.ok_or_else(|| ApiError::not_found("The server of this call has ended."))
    }
}

/// Passes a notice of a server to the page.
fn report(live: &Live, notice: ServerNotice) {
    match notice {
        ServerNotice::Joined { server, info, state } => {
            let waiting = state.waiting.iter().map(value).collect();
            let running = state.running.iter().map(value).collect();
            live.join(&server, value(info.as_ref()), waiting, running);
        }
        ServerNotice::Event { server, event, .. } => {
            let mut event = value(&event);
            let name = event.as_object_mut().and_then(|fields| fields.remove("type"));
            if let Some(name) = name.as_ref().and_then(Value::as_str) {
                live.report(&server, name, event);
            }
        }
        ServerNotice::Missed { server, .. } => live.miss(&server),
        ServerNotice::Left { server } => live.leave(&server),
    }
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> ApiError {
        let (status, kind) = match error.kind {
            RequestErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            RequestErrorKind::Conflict => (StatusCode::CONFLICT, "conflict"),
            RequestErrorKind::Invalid => (StatusCode::BAD_REQUEST, "invalid"),
            RequestErrorKind::Io => (StatusCode::INTERNAL_SERVER_ERROR, "io"),
        };
        let settled = error.settled.map(|settled| value(&settled));
        ApiError { settled, ..ApiError::new(status, kind, error.message) }
    }
}
