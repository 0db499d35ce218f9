//! Makes a port that a command listens on reachable from outside.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::connect;

use super::{ACCEPT_PAUSE, Shared, Slot, spawn};
use crate::host::Host;
use crate::refusal_reply::reset;
use crate::relay::{Copied, Lifetime, RelayEnd, relay};

/// Listens outside on a port until the namespace is closed.
pub(super) fn start(shared: &Arc<Shared>, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let shared = shared.clone();
    spawn("toolcrib-expose", move || accept_all(&shared, &listener, port))
}

fn accept_all(shared: &Arc<Shared>, listener: &TcpListener, port: u16) {
    while shared.wait_for_slot() {
        let mut both =
            [PollFd::new(listener, PollFlags::IN), PollFd::new(&shared.wake, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        match listener.accept() {
            Ok((client, _)) => {
                shared.state.lock().connections += 1;
                let (slot, shared) = (Slot(shared.clone()), shared.clone());
                // Without a thread, the connection is closed.
                let _ = spawn("toolcrib-net", move || {
                    let _slot = slot;
                    serve(&shared, client, port);
                });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// Connects to the port inside and copies bytes. Without a server there, the connection is reset.
fn serve(shared: &Shared, client: TcpStream, port: u16) {
    let inside = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let server = shared.take_socket().and_then(|socket| {
        connect(&socket, &inside)?;
        Ok(TcpStream::from(socket))
    });
    let Ok(server) = server else { return reset(client) };
    let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let any_host = Host::Address(inside.ip());
    let lifetime = Lifetime { stop: &shared.stop, job: None };
    match relay((&client, &server), Vec::new(), &any_host, &lifetime, &mut Copied::default()) {
        Ok(RelayEnd::Closed) => {}
        _ => {
            reset(server);
            reset(client);
        }
    }
}
