//! Resolves names outside.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Finds the addresses of a host.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// The addresses of a name. May block.
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The resolver of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        (name, port).to_socket_addrs().map(Iterator::collect)
    }
}
