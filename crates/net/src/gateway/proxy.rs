//! A proxy on the loopback of this machine, for commands without a network namespace of their own.
//!
//! The supervisor lets commands connect to this address only, and reports each connection. A connection without a
//! report comes from another program of the machine, and is closed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{ACCEPT_PAUSE, Shared, Slot, UnboundSockets, spawn};
use crate::connection_policy::{Attempt, ConnectionPolicy};
use crate::connection_sources::ConnectionEnds;
use crate::job_connections::AcceptedConnection;
use crate::proxy_request::{ProxyRequest, read_request};
use crate::resolve::Resolver;

/// The proxy of one session. Dropping it ends its connections.
#[derive(Debug)]
pub struct ProxyGateway {
    shared: Arc<Shared>,
    port: u16,
}

impl ProxyGateway {
    /// Starts to listen on a free port of the loopback address.
    pub fn start(
        policy: Arc<dyn ConnectionPolicy>,
        resolver: Arc<dyn Resolver>,
    ) -> io::Result<ProxyGateway> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let no_sockets = UnboundSockets { unbound: Vec::new(), more: None };
        let shared = Shared::new(no_sockets, policy, resolver)?;
        spawn("toolcrib-proxy", {
            let shared = shared.clone();
            move || accept_all(&shared, &listener)
        })?;
        Ok(ProxyGateway { shared, port })
    }

    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// A job has connected a socket with this local address to the proxy, or will have soon.
    pub fn connected(&self, job: &str, local: SocketAddr) {
        self.shared.report(job, ConnectionEnds::new(local, self.address()));
    }

    /// All processes of a job have exited. See [`super::NamespaceGateway::job_ended`].
    pub fn job_ended(&self, job: &str) {
        self.shared.state.lock().sources.job_ended(job);
    }
}

impl Drop for ProxyGateway {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

fn accept_all(shared: &Arc<Shared>, listener: &TcpListener) {
    while shared.wait_for_slot() {
        let mut both =
            [PollFd::new(listener, PollFlags::IN), PollFd::new(&shared.wake, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        match listener.accept().and_then(|(client, source)| {
            Ok((client, ConnectionEnds::new(source, listener.local_addr()?)))
        }) {
            Ok((client, ends)) => {
                shared.state.lock().connections += 1;
                let (slot, shared) = (Slot(shared.clone()), shared.clone());
                // Without a thread, the connection is closed.
                let _ = spawn("toolcrib-net", move || {
                    let _slot = slot;
                    serve(&shared, client, ends);
                });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// Reads which host a client wants, and serves the connection like one to an address that stands for that host.
fn serve(shared: &Shared, mut client: TcpStream, ends: ConnectionEnds) {
    let Some(job) = shared.wait_for_report(ends) else { return };
    if client.set_nonblocking(false).is_err() {
        return;
    }
    let Some(ProxyRequest { host, port, first_bytes }) = read_request(&mut client) else { return };
    let number = {
        let mut state = shared.state.lock();
        state.last_connection += 1;
        state.last_connection
    };
    let attempt = Attempt { requester: job.job.clone(), host, port, number };
    shared.serve_in_turn(&job, AcceptedConnection { client, attempt, first_bytes });
}
