//! Resolves names outside.

use std::fmt;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use crate::host::Host;
use crate::upstream_proxy::{UpstreamProxies, UpstreamProxy};

/// Finds the addresses of a host.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// The addresses of a name. May block.
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// The proxy that connections to a host go through. It resolves the name then.
    fn proxy(&self, _host: &Host, _port: u16) -> Option<&UpstreamProxy> {
        None
    }
}

/// A resolver, and the proxies of this machine.
#[derive(Debug)]
pub struct ProxiedResolver {
    /// Finds the addresses of hosts that are reached directly, and of the proxies.
    pub resolver: Arc<dyn Resolver>,
    /// The proxies.
    pub proxies: UpstreamProxies,
}

impl Resolver for ProxiedResolver {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolver.resolve(name, port)
    }

    fn proxy(&self, host: &Host, port: u16) -> Option<&UpstreamProxy> {
        self.proxies.of(host, port)
    }
}

/// The resolver of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

/// The file with names and addresses that the resolver of the system reads first.
const HOSTS_FILE: &str = "/etc/hosts";

/// A larger file is not searched.
const MAX_HOSTS_BYTES: u64 = 1 << 20;

impl Resolver for SystemResolver {
    /// The final dot makes the name absolute. Without it, a missing `x.example.com` could become
    /// `x.example.com.SEARCH` with the search list of `resolv.conf`. The system does not find a name with a dot in
    /// its hosts file, so that file is searched here.
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let listed = listed_addresses(&read_hosts_file(), name);
        if !listed.is_empty() {
            return Ok(listed.into_iter().map(|ip| SocketAddr::new(ip, port)).collect());
        }
        (format!("{name}."), port).to_socket_addrs().map(Iterator::collect)
    }
}

/// The content of the hosts file. Empty if there is none.
fn read_hosts_file() -> String {
    let mut text = String::new();
    let file = std::fs::File::open(HOSTS_FILE).ok();
    let read = file.and_then(|file| file.take(MAX_HOSTS_BYTES).read_to_string(&mut text).ok());
    read.map(|_| text).unwrap_or_default()
}

/// The addresses of a name in the text of a hosts file.
fn listed_addresses(text: &str, name: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|alias| alias.eq_ignore_ascii_case(name)).then_some(address)
    };
    text.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_hosts_file_are_found() {
        let text = "# 10.0.0.9 a.example\n10.0.0.5\tdb.example a.Example # b.example\nfe80::1 a.example\nx a.example\n";
        let found = |name: &str| -> Vec<String> {
            listed_addresses(text, name).iter().map(ToString::to_string).collect()
        };
        assert_eq!(found("a.example"), ["10.0.0.5", "fe80::1"]);
        assert_eq!(found("DB.example"), ["10.0.0.5"]);
        assert!(found("b.example").is_empty() && found("10.0.0.5").is_empty());
    }

    #[test]
    fn missing_names_are_not_completed() {
        assert!(SystemResolver.resolve("missing.invalid", 80).is_err());
    }
}
