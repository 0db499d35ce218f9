//! Connects the sandbox of commands to the crate that serves their connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use toolcrib_exec::{Gateway, NetworkExit, NetworkSockets, NoRoute};
use toolcrib_net::{ConnectError, ConnectionPolicy, NamespaceGateway, NamespaceSockets, Resolver};

/// The gateway of a session.
#[derive(Debug)]
pub(crate) struct SessionGateway {
    pub(crate) policy: Arc<dyn ConnectionPolicy>,
    pub(crate) resolver: Arc<dyn Resolver>,
}

impl Gateway for SessionGateway {
    fn open(&self, sockets: NetworkSockets) -> io::Result<Arc<dyn NetworkExit>> {
        let NetworkSockets { dns, unbound, more } = sockets;
        let sockets = NamespaceSockets { dns, unbound, more };
        let (policy, resolver) = (self.policy.clone(), self.resolver.clone());
        Ok(Arc::new(NamespaceExit(NamespaceGateway::start(sockets, policy, resolver)?)))
    }
}

/// The way out of one network namespace.
#[derive(Debug)]
struct NamespaceExit(NamespaceGateway);

impl NetworkExit for NamespaceExit {
    fn before_connect(&self, job: &str, peer: SocketAddr) -> Result<SocketAddr, NoRoute> {
        self.0.prepare(job, peer).map_err(|error| match error {
            ConnectError::Unreachable => NoRoute::Refused,
            ConnectError::NoSocket => NoRoute::NoSocket,
        })
    }

    fn before_bind(&self, port: u16) {
        self.0.release_port(port);
    }
}
