//! Connections to all servers of the user, as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use crate::client::{Client, Notice};
use crate::messages::State;
use crate::protocol::{Event, Server};
use crate::socket_directory::{SocketPath, sockets};

/// How often the directory is searched for new servers.
const SCAN_INTERVAL: Duration = Duration::from_millis(300);

/// A server that does not reply within this time is tried again later. It may be stopped.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// What happens at the servers.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all notices are events")]
pub enum ServerNotice {
    /// A server was found. It is the first notice about it.
    Joined {
        /// Id of the server.
        server: String,
        /// Its description.
        info: Box<Server>,
        /// Its state. Later events follow.
        state: Box<State>,
    },
    /// An event.
    Event {
        /// Id of the server.
        server: String,
        /// Number of the event at this server.
        seq: u64,
        /// The event.
        event: Event,
    },
    /// Events were dropped, because they were taken too slowly.
    Missed {
        /// Id of the server.
        server: String,
        /// Their number.
        missed: u64,
    },
    /// A server has ended. It is the last notice about it.
    Left {
        /// Id of the server.
        server: String,
    },
}

/// The connections. Dropping them disconnects.
#[derive(Debug)]
pub struct Servers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directories: Vec<PathBuf>,
    clients: Mutex<BTreeMap<String, Arc<Client>>>,
    /// Servers that a thread connects to.
    joining: Mutex<BTreeSet<String>>,
    is_closed: AtomicBool,
}

type Sink = Arc<dyn Fn(ServerNotice) + Send + Sync>;

impl Servers {
    /// Connects to the servers with sockets in these directories, now and later. `sink` is called on threads of the
    /// connections, and for one server in order. A slow sink delays only its own notices.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn join(
        directories: &[PathBuf],
        sink: impl Fn(ServerNotice) + Send + Sync + 'static,
    ) -> std::io::Result<Servers> {
        let shared = Arc::new(Shared {
            directories: directories.to_owned(),
            clients: Mutex::default(),
            joining: Mutex::default(),
            is_closed: AtomicBool::new(false),
        });
        let scanning = shared.clone();
        let sink: Sink = Arc::new(sink);
        scanning.scan(&sink);
        thread::Builder::new().name("monitor servers".to_owned()).spawn(move || {
            while !scanning.is_closed.load(Ordering::Acquire) {
                thread::sleep(SCAN_INTERVAL);
                scanning.scan(&sink);
            }
        })?;
        Ok(Servers { shared })
    }

    /// The connection to a server.
    pub fn client(&self, server: &str) -> Option<Arc<Client>> {
        self.shared.clients.lock().get(server).cloned()
    }

    /// All connections.
    pub fn clients(&self) -> Vec<Arc<Client>> {
        self.shared.clients.lock().values().cloned().collect()
    }

    /// Reports to all servers whether a viewer is active. Repeat it every few seconds.
    pub fn visible(&self, visible: bool) {
        for client in self.clients() {
            client.tell_visible(visible);
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.clients.lock().clear();
    }
}

impl Shared {
    /// Connects to the servers that are not connected, each on its own thread: one that is stopped delays no other.
    fn scan(self: &Arc<Shared>, sink: &Sink) {
        for socket in self.directories.iter().flat_map(|directory| sockets(directory)) {
            if self.is_closed.load(Ordering::Acquire) {
                return;
            }
            // A thread adds its server to the clients before it removes it here.
            let is_new = self.joining.lock().insert(socket.server.clone());
            if !is_new {
                continue;
            }
            let server = socket.server.clone();
            let is_known = self.clients.lock().contains_key(&server);
            let (shared, sink) = (self.clone(), sink.clone());
            let thread = thread::Builder::new().name("monitor join".to_owned());
            let join = move || {
                shared.join_one(&socket, &sink);
                shared.joining.lock().remove(&socket.server);
            };
            if is_known || thread.spawn(join).is_err() {
                self.joining.lock().remove(&server);
            }
        }
    }

    fn join_one(self: &Arc<Shared>, socket: &SocketPath, sink: &Sink) {
        // Held until the server is announced, so that its first event comes after that.
        let announced = Arc::new(Mutex::new(false));
        let mut is_announced = announced.lock();
        let (shared, server, notices) = (self.clone(), socket.server.clone(), sink.clone());
        let gate = announced.clone();
        let connected = Client::connect(socket, move |notice| {
            let is_announced = *gate.lock();
            let server = server.clone();
            match notice {
                Notice::Event { seq, event } => notices(ServerNotice::Event { server, seq, event }),
                Notice::Missed { missed } => notices(ServerNotice::Missed { server, missed }),
                Notice::Closed => {
                    shared.clients.lock().remove(&server);
                    if is_announced {
                        notices(ServerNotice::Left { server });
                    }
                }
            }
        });
        let Ok(client) = connected else { return };
        if client.hello_within(HELLO_TIMEOUT).is_err() {
            return;
        }
        // Described after the state, so that an earlier event about the description is not lost.
        let Ok(state) = client.subscribe(None) else { return };
        let Ok(info) = client.hello() else { return };
        let server = socket.server.clone();
        let mut clients = self.clients.lock();
        if self.is_closed.load(Ordering::Acquire) {
            return;
        }
        clients.insert(server.clone(), Arc::new(client));
        drop(clients);
        sink(ServerNotice::Joined { server, info: Box::new(info), state: Box::new(state) });
        *is_announced = true;
    }
}
