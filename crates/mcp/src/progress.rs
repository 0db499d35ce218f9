//! Reports to a client that asked for it how far a call is, and that it is still running.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::runtime::Handle;
use toolcrib::Progress;

/// The minimum interval between two reports.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// The interval of reports about a silent call. Clients give up after a minute of silence.
const HEARTBEAT: Duration = Duration::from_secs(8);

/// Reports on one call to one client.
pub(crate) struct Reporter {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    runtime: Handle,
    last: Mutex<Last>,
}

struct Last {
    said: Instant,
    progress: f64,
}

impl Reporter {
    pub(crate) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        let last = Mutex::new(Last { said: Instant::now(), progress: 0.0 });
        Reporter { peer, token, runtime: Handle::current(), last }
    }

    /// Forwards the progress of a tool. Only increasing values are sent, as the protocol requires.
    pub(crate) fn report(&self, progress: Progress<'_>) {
        let mut last = self.last.lock();
        if self.token.is_none() || last.said.elapsed() < LEAST_PAUSE {
            return;
        }
        let done = (progress.done as f64).max(last.progress + 1.0);
        *last = Last { said: Instant::now(), progress: done };
        drop(last);
        let total = progress.total.map(|total| (total as f64).max(done));
        self.send(done, total, progress.message.to_owned());
    }

    /// Reports periodically that the call still runs, as long as it is polled.
    pub(crate) async fn heartbeat(&self, tool: &str) {
        let began = Instant::now();
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            let seconds = began.elapsed().as_secs();
            let mut last = self.last.lock();
            if self.token.is_none() || last.said.elapsed() < HEARTBEAT {
                continue;
            }
            let done = last.progress + 1.0;
            *last = Last { said: Instant::now(), progress: done };
            drop(last);
            self.send(done, None, format!("{tool} has been running for {seconds} s"));
        }
    }

    fn send(&self, done: f64, total: Option<f64>, message: String) {
        let Some(token) = self.token.clone() else { return };
        let mut param = ProgressNotificationParam::new(token, done).with_message(message);
        if let Some(total) = total {
            param = param.with_total(total);
        }
        let peer = self.peer.clone();
        // A report may be lost if the client does not listen.
        self.runtime.spawn(async move {
            let _ = peer.notify_progress(param).await;
        });
    }
}
