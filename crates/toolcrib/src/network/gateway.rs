//! Connects the sandbox of commands to the crate that serves their connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use toolcrib_exec::{Gateway, NetworkExit, NetworkSockets, NoRoute, ProxyExit};
use toolcrib_net::{ConnectError, NamespaceGateway, NamespaceSockets, ProxyGateway, Resolver};

use super::session_connections::SessionConnections;

/// The gateway of a session.
#[derive(Debug)]
pub(crate) struct SessionGateway {
    pub(crate) network: Arc<SessionConnections>,
    pub(crate) resolver: Arc<dyn Resolver>,
}

impl Gateway for SessionGateway {
    fn open(&self, sockets: NetworkSockets) -> io::Result<Arc<dyn NetworkExit>> {
        let NetworkSockets { dns, unbound, more } = sockets;
        let sockets = NamespaceSockets { dns, unbound, more };
        let (network, resolver) = (self.network.clone(), self.resolver.clone());
        let gateway = NamespaceGateway::start(sockets, network.clone(), resolver)?;
        if let Some(inspection) = network.inspection() {
            inspection.attach(&gateway);
        }
        Ok(Arc::new(NamespaceExit { gateway, network }))
    }

    fn open_proxy(&self) -> io::Result<ProxyExit> {
        let proxy = ProxyGateway::start(self.network.clone(), self.resolver.clone())?;
        let port = proxy.address().port();
        Ok(ProxyExit { exit: Arc::new(OnlyProxy(proxy)), port })
    }
}

/// The way to hosts through a proxy, which is the only address that commands connect to.
#[derive(Debug)]
struct OnlyProxy(ProxyGateway);

impl NetworkExit for OnlyProxy {
    fn before_connect(&self, peer: SocketAddr) -> Result<SocketAddr, NoRoute> {
        let canonical = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        if canonical == self.0.address() { Ok(peer) } else { Err(NoRoute::Refused) }
    }

    fn connected(&self, job: &str, local: SocketAddr, _: SocketAddr) {
        self.0.connected(job, local);
    }

    fn job_ended(&self, job: &str) {
        self.0.job_ended(job);
    }

    /// Commands without a network namespace have no servers.
    fn before_bind(&self, _: SocketAddr) {}
}

/// The way out of one network namespace.
#[derive(Debug)]
struct NamespaceExit {
    gateway: NamespaceGateway,
    network: Arc<SessionConnections>,
}

impl NetworkExit for NamespaceExit {
    fn before_connect(&self, peer: SocketAddr) -> Result<SocketAddr, NoRoute> {
        self.gateway.prepare(peer).map_err(|error| match error {
            ConnectError::Unreachable => NoRoute::Refused,
            ConnectError::NoSocket => NoRoute::NoSocket,
        })
    }

    fn connected(&self, job: &str, local: SocketAddr, peer: SocketAddr) {
        self.gateway.connected(job, local, peer);
    }

    fn job_ended(&self, job: &str) {
        self.gateway.job_ended(job);
    }

    fn before_bind(&self, address: SocketAddr) {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        if ip.is_unspecified() {
            self.gateway.release_port(port);
        }
        if (ip.is_unspecified() || ip.is_loopback()) && self.network.exposes(port) {
            let exposed = self.gateway.expose(port);
            self.network.set_exposed(port, exposed.map_err(|error| error.to_string()));
        }
    }
}
