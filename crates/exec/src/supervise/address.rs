//! Parses socket addresses.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::refusal::Refusal;

/// The port of DNS. No command can listen there: it takes a capability.
const DNS_PORT: u16 = 53;

/// Services that libraries try first. Programs work without them.
const OPTIONAL_SERVICES: [&str; 4] =
    ["/run/nscd", "/var/run/nscd", "/run/systemd", "/var/run/systemd"];

/// The peer of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Peer {
    Network(SocketAddr),
    /// A Unix socket with a path.
    Path(PathBuf),
    /// An abstract Unix socket, without the leading zero byte of its name.
    Abstract(Vec<u8>),
}

/// Whether a service is optional, so that its absence is not reported.
pub(super) fn is_optional_service(path: &Path) -> bool {
    OPTIONAL_SERVICES.iter().any(|asked| path.starts_with(asked))
}

/// The denial to report for this address where only loopback exists. `None` if it can be reached.
pub(super) fn refusal(address: SocketAddr) -> Option<Refusal> {
    let here = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => ip.is_loopback() || ip.is_unspecified(),
            None => ip.is_loopback() || ip.is_unspecified(),
        },
    };
    match address.port() {
        // This only asks for the route.
        0 => None,
        DNS_PORT => Some(Refusal::LookUp(address)),
        _ => (!here).then_some(Refusal::Connect(address)),
    }
}

/// The raw address of a Unix socket with a path.
pub(super) fn unix_address(path: &Path) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend_from_slice(path.as_os_str().as_bytes());
    address.push(0);
    address
}

/// The raw form of an internet address.
pub(super) fn network_address(address: SocketAddr) -> Vec<u8> {
    let (family, port) = match address {
        SocketAddr::V4(_) => (libc::AF_INET, address.port()),
        SocketAddr::V6(_) => (libc::AF_INET6, address.port()),
    };
    let mut raw = (family as u16).to_ne_bytes().to_vec();
    raw.extend(port.to_be_bytes());
    match address {
        SocketAddr::V4(address) => {
            raw.extend(address.ip().octets());
            raw.extend([0; 8]);
        }
        SocketAddr::V6(address) => {
            raw.extend(address.flowinfo().to_be_bytes());
            raw.extend(address.ip().octets());
            raw.extend(address.scope_id().to_ne_bytes());
        }
    }
    raw
}

/// Parses a raw address. `None` if it has another family.
pub(super) fn parse(address: &[u8]) -> Option<Peer> {
    let family = u16::from_ne_bytes(address.get(..2)?.try_into().ok()?);
    let port = || Some(u16::from_be_bytes(address.get(2..4)?.try_into().ok()?));
    match i32::from(family) {
        libc::AF_INET => {
            let ip: [u8; 4] = address.get(4..8)?.try_into().ok()?;
            Some(Peer::Network(SocketAddr::new(Ipv4Addr::from(ip).into(), port()?)))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = address.get(8..24)?.try_into().ok()?;
            Some(Peer::Network(SocketAddr::new(Ipv6Addr::from(ip).into(), port()?)))
        }
        libc::AF_UNIX => {
            let name = address.get(2..)?;
            match name.split_first() {
                None => None,
                Some((0, name)) => Some(Peer::Abstract(name.to_vec())),
                Some(_) => {
                    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    Some(Peer::Path(OsStr::from_bytes(name.get(..end)?).into()))
                }
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str) -> Option<Refusal> {
        refusal(address.parse().unwrap())
    }

    #[test]
    fn only_loopback_is_reachable() {
        for here in
            ["127.0.0.1:80", "127.9.9.9:1", "0.0.0.0:80", "[::1]:80", "[::ffff:127.0.0.1]:8"]
        {
            assert_eq!(refused(here), None, "{here}");
        }
        for away in ["93.184.216.34:443", "[2001:db8::1]:443", "[::ffff:1.2.3.4]:80"] {
            assert_eq!(refused(away), Some(Refusal::Connect(away.parse().unwrap())));
        }
        for names in ["8.8.8.8:53", "127.0.0.53:53"] {
            assert_eq!(refused(names), Some(Refusal::LookUp(names.parse().unwrap())));
        }
        assert_eq!(refused("8.8.8.8:0"), None);
    }

    #[test]
    fn raw_addresses_are_parsed() {
        let mut four = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        four.extend([1, 187, 1, 2, 3, 4, 0, 0]);
        let Some(Peer::Network(address)) = parse(&four) else { panic!() };
        assert_eq!(address.to_string(), "1.2.3.4:443");
        let socket = |name: &[u8]| {
            let mut unix = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
            unix.extend(name);
            parse(&unix)
        };
        let path = |path: &str| Some(Peer::Path(path.into()));
        assert_eq!(socket(b"/run/docker.sock\0junk"), path("/run/docker.sock"));
        assert_eq!(socket(b"relative"), path("relative"));
        assert_eq!(socket(b"\0abstract"), Some(Peer::Abstract(b"abstract".to_vec())));
        assert_eq!(socket(b""), None);
        assert_eq!(parse(&unix_address(Path::new("/x"))), path("/x"));
        assert!(is_optional_service(Path::new("/run/nscd/socket")));
        for text in ["198.18.0.1:443", "[::ffff:198.18.0.1]:443"] {
            let address = text.parse().unwrap();
            assert_eq!(parse(&network_address(address)), Some(Peer::Network(address)));
        }
        assert!(parse(&four[..3]).is_none() && parse(&[]).is_none());
    }
}
