//! A connection of this program itself to a server that the user configured, such as a database: over TCP or a unix socket,
//! in the clear or with TLS. Every wait has an end.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustls::{ClientConnection, StreamOwned};

use crate::server_authorities::server_authorities;
use crate::server_dial::{LEAST_TIMEOUT, connect_tcp, tls_client};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// On a port of a host.
    Host(String, u16),
    /// On a unix socket.
    Socket(PathBuf),
}

/// A connection to a server.
#[derive(Debug)]
pub struct ServerStream(Stream);

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl ServerStream {
    /// Connects.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the server does not accept the connection in time.
    pub fn connect(address: &ServerAddress, until: Instant) -> Result<ServerStream, String> {
        match address {
            ServerAddress::Host(host, port) => {
                connect_tcp(host, *port, until).map(|tcp| ServerStream(Stream::Tcp(tcp)))
            }
            ServerAddress::Socket(path) => unix(path, until)
                .map(|unix| ServerStream(Stream::Unix(unix)))
                .map_err(|error| format!("{}: {error}", path.display())),
        }
    }

    /// Whether other machines could read or change what is sent.
    pub fn is_exposed(&self) -> bool {
        match &self.0 {
            Stream::Tcp(tcp) => !tcp.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()),
            Stream::Unix(_) | Stream::Tls(_) => false,
        }
    }

    /// Goes on with TLS, after the server has agreed to it. Its certificate must be for this host, and signed by one of the
    /// authorities in a file, or by one that the system trusts.
    ///
    /// # Errors
    ///
    /// Fails if the authorities cannot be read. A wrong certificate is an error of the first read or write.
    pub fn start_tls(self, host: &str, authorities: Option<&Path>) -> Result<ServerStream, String> {
        let Stream::Tcp(tcp) = self.0 else {
            return Err("TLS is for connections to hosts".to_owned());
        };
        let connection = tls_client(host, server_authorities(authorities)?)?;
        Ok(ServerStream(Stream::Tls(Box::new(StreamOwned::new(connection, tcp)))))
    }

    /// Sets when reads and writes fail.
    ///
    /// # Errors
    ///
    /// Fails if the time is over.
    pub fn set_deadline(&self, until: Instant) -> io::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        if left < LEAST_TIMEOUT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match &self.0 {
            Stream::Tcp(tcp) => set_timeouts(tcp, left),
            Stream::Tls(tls) => set_timeouts(&tls.sock, left),
            Stream::Unix(unix) => {
                unix.set_read_timeout(Some(left)).and_then(|()| unix.set_write_timeout(Some(left)))
            }
        }
    }
}

fn set_timeouts(tcp: &TcpStream, left: Duration) -> io::Result<()> {
    tcp.set_read_timeout(Some(left)).and_then(|()| tcp.set_write_timeout(Some(left)))
}

/// Connecting waits if the server does not accept, at most for the timeout of the socket.
fn unix(path: &Path, until: Instant) -> io::Result<UnixStream> {
    let left = until.saturating_duration_since(Instant::now()).max(LEAST_TIMEOUT);
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(left))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

impl Read for ServerStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Tcp(tcp) => tcp.read(buffer),
            Stream::Unix(unix) => unix.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for ServerStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Tcp(tcp) => tcp.write(bytes),
            Stream::Unix(unix) => unix.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Stream::Tcp(tcp) => tcp.flush(),
            Stream::Unix(unix) => unix.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}
