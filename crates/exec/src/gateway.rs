//! The interface to the part of the host that connects commands to other machines.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Connects the commands of network namespaces to other machines, as far as it allows. Used with
/// [`crate::Network::List`].
pub trait Gateway: Send + Sync + fmt::Debug {
    /// Serves a network namespace until the result is dropped.
    fn open(&self, sockets: NetworkSockets) -> io::Result<Arc<dyn NetworkExit>>;

    /// Serves a proxy on the loopback of this machine, for commands without a network namespace of their own.
    fn open_proxy(&self) -> io::Result<ProxyExit>;
}

/// The way to other machines through a proxy.
#[derive(Debug, Clone)]
pub struct ProxyExit {
    /// Lets commands connect to the proxy and to nothing else.
    pub exit: Arc<dyn NetworkExit>,
    /// The port of the proxy at 127.0.0.1.
    pub port: u16,
}

/// The way out of one network namespace. The supervisor calls it while a system call waits, so it must not
/// block.
pub trait NetworkExit: Send + Sync + fmt::Debug {
    /// A command is about to connect a TCP socket to an address other than a local one. Returns the address to
    /// connect to in its place.
    fn before_connect(&self, peer: SocketAddr) -> Result<SocketAddr, NoRoute>;

    /// A TCP socket of a command with this local address is connected to an address of
    /// [`NetworkExit::before_connect`], or will be. `job` is the id of the job in its session.
    fn connected(&self, job: &str, local: SocketAddr, peer: SocketAddr);

    /// All processes of a job have exited.
    fn job_ended(&self, job: &str);

    /// A command is about to bind a TCP socket to this address.
    fn before_bind(&self, address: SocketAddr);
}

/// Why there is no way to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoute {
    /// Commands may not connect to it.
    Refused,
    /// There is no socket for it.
    NoSocket,
}

/// Sockets that were made inside a network namespace. They stay in it, wherever they are used.
pub struct NetworkSockets {
    /// A UDP socket, bound to port 53 of the loopback address.
    pub dns: OwnedFd,
    /// TCP sockets that are not bound. The host may bind them to any port.
    pub unbound: Vec<OwnedFd>,
    /// Makes more of them. `None` if that is not possible.
    pub more: Option<MakeSockets>,
}

/// Makes TCP sockets inside a network namespace.
pub type MakeSockets = Box<dyn Fn() -> io::Result<Vec<OwnedFd>> + Send + Sync>;

impl fmt::Debug for NetworkSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkSockets")
            .field("unbound", &self.unbound.len())
            .finish_non_exhaustive()
    }
}
