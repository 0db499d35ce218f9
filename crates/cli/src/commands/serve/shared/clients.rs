//! The clients of a shared server. Each has a connection, and a session of its own.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use toolcrib::Runtime;
use toolcrib_mcp::{ServeOptions, serve_socket};
use toolcrib_monitor::{bind_private, require_same_user};

use super::greeting::{refuse, welcome};
use super::key::SharedKey;
use super::place::Place;
use super::start::tell_ready;
use crate::output;

/// More clients than a user has.
const MAX_CLIENTS: usize = 64;

/// How long the server waits for the next client after the last has left. Clients are often restarted.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// Pause after a failed accept, which is usually caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Errors of connections that are reported. A broken client must not fill the disk.
const MAX_REPORTED: usize = 100;

/// A server that listens.
pub(super) struct Clients {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Arc<Runtime>,
    options: ServeOptions,
    /// The key, which clients compare.
    key: SharedKey,
    state: Mutex<State>,
    /// A client has come or left.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    connected: usize,
    /// The server ends, and takes no more clients.
    is_ending: bool,
    reported: usize,
}

impl Clients {
    /// Listens for clients, and tells the one that started this process.
    pub(super) fn listen(
        runtime: Runtime,
        options: ServeOptions,
        key: SharedKey,
        place: &Place,
    ) -> Result<Clients, String> {
        let failed = |error: io::Error| format!("{}: {error}", place.socket.display());
        let listener = bind_private(&place.socket).map_err(failed)?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let runtime = Arc::new(runtime);
        let shared = Arc::new(Shared { runtime, options, key, state, changed });
        let accepting = shared.clone();
        let thread = thread::Builder::new().name("accept".to_owned());
        thread.spawn(move || accepting.accept(&listener)).map_err(failed)?;
        // If it has gone, the server ends soon.
        let _ = tell_ready();
        Ok(Clients { shared })
    }

    /// Serves until no client has been connected for some time.
    pub(super) fn serve_all(self, place: &Place) -> Result<ExitCode, String> {
        loop {
            self.shared.wait_until_idle();
            let failed = |error: io::Error| format!("{}: {error}", place.socket.display());
            // A client that starts or joins the server has the lock.
            let Some(lock) = place.try_lock().map_err(failed)? else { continue };
            let mut state = self.shared.state.lock();
            if state.connected == 0 {
                state.is_ending = true;
                // A connection that was not accepted is closed without a greeting, and its client starts a new server.
                place.remove(&lock);
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

impl Shared {
    /// Waits until no client has been connected for some time.
    fn wait_until_idle(&self) {
        let mut state = self.state.lock();
        loop {
            self.changed.wait_while(&mut state, |state| state.connected > 0);
            let is_over = self.changed.wait_for(&mut state, IDLE_TIME).timed_out();
            if is_over && state.connected == 0 {
                return;
            }
        }
    }

    fn accept(self: Arc<Shared>, listener: &UnixListener) {
        loop {
            match listener.accept() {
                // The stream is closed if the thread cannot be started.
                Ok((stream, _)) => self.report(self.begin(stream)),
                Err(_) => thread::sleep(ACCEPT_RETRY_DELAY),
            }
        }
    }

    fn begin(self: &Arc<Shared>, stream: UnixStream) -> io::Result<()> {
        require_same_user(&stream)?;
        let client = match CountedClient::add(self) {
            Ok(client) => client,
            // Without a greeting, so that the client starts a new server.
            Err(NotAdded::Ending) => return Ok(()),
            Err(NotAdded::TooMany) => {
                let reason = format!("the shared server has {MAX_CLIENTS} clients already");
                return refuse(&stream, &reason);
            }
        };
        let shared = self.clone();
        let thread = thread::Builder::new().name("client".to_owned());
        thread.spawn(move || {
            let served = shared.serve(&stream);
            // A call that does not end keeps another descriptor of it.
            let _ = stream.shutdown(Shutdown::Both);
            shared.report(served);
            drop(client);
        })?;
        Ok(())
    }

    /// Serves one client until it disconnects.
    fn serve(&self, stream: &UnixStream) -> io::Result<()> {
        welcome(stream, &self.key)?;
        let served = serve_socket(self.runtime.clone(), self.options.clone(), stream.try_clone()?);
        served.map_err(io::Error::other)
    }

    fn report(&self, done: io::Result<()>) {
        if let Err(error) = done {
            let mut state = self.state.lock();
            state.reported += 1;
            if state.reported <= MAX_REPORTED {
                output::usage_error(&format!("a connection has ended: {error}"));
            }
        }
    }
}

/// Why a client is not served.
enum NotAdded {
    Ending,
    TooMany,
}

/// A client that counts until it is dropped.
struct CountedClient(Arc<Shared>);

impl CountedClient {
    fn add(shared: &Arc<Shared>) -> Result<CountedClient, NotAdded> {
        let mut state = shared.state.lock();
        if state.is_ending {
            return Err(NotAdded::Ending);
        }
        if state.connected == MAX_CLIENTS {
            return Err(NotAdded::TooMany);
        }
        state.connected += 1;
        shared.changed.notify_all();
        Ok(CountedClient(shared.clone()))
    }
}

impl Drop for CountedClient {
    fn drop(&mut self) {
        self.0.state.lock().connected -= 1;
        self.0.changed.notify_all();
    }
}
