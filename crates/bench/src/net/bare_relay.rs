//! The least that a relay in user space can do: each direction of a connection is moved by `splice` through a pipe.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use toolcrib_devtools::error::Result;

/// As much as the product moves at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Relays connections to a server. Returns the address for clients.
pub(super) fn start(server: SocketAddr) -> Result<SocketAddr> {
    let listener = TcpListener::bind((server.ip(), 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || relay(&client, server));
        }
    });
    Ok(address)
}

fn relay(client: &TcpStream, server: SocketAddr) {
    let Ok(server) = TcpStream::connect(server) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    std::thread::scope(|scope| {
        scope.spawn(|| transfer(client, &server));
        transfer(&server, client);
    });
}

/// Moves bytes until one end is closed.
fn transfer(from: &TcpStream, to: &TcpStream) {
    let Ok((output, input)) = pipe_with(PipeFlags::CLOEXEC) else { return };
    // The default size works, too.
    let _ = fcntl_setpipe_size(&input, CHUNK_BYTES);
    while let Ok(moved @ 1..) = splice(from, None, &input, None, CHUNK_BYTES, SpliceFlags::MOVE) {
        let mut left = moved;
        while left > 0 {
            let Ok(moved @ 1..) = splice(&output, None, to, None, left, SpliceFlags::MOVE) else {
                return;
            };
            left -= moved;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
