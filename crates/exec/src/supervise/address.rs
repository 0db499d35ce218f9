//! Whom an address reaches.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::refusal::Refusal;

/// Where names are looked up. No command can listen there: it takes a capability.
const NAMES: u16 = 53;

/// Services that libraries ask before they look for themselves. Programs go on without them.
const ASKED_IN_PASSING: [&str; 4] =
    ["/run/nscd", "/var/run/nscd", "/run/systemd", "/var/run/systemd"];

/// The peer that an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    Network(SocketAddr),
    /// A socket with a name in the file system.
    Path(PathBuf),
    /// A socket with a name of its own, without the zero that it begins with.
    Abstract(Vec<u8>),
}

/// Whether the absence of a service goes without saying.
pub(super) fn is_asked_in_passing(path: &Path) -> bool {
    ASKED_IN_PASSING.iter().any(|asked| path.starts_with(asked))
}

/// The refusal to reach this address where there is nothing but loopback; nothing, if it can be reached.
pub(super) fn refusal(address: SocketAddr) -> Option<Refusal> {
    let here = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_unspecified(),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => ip.is_loopback() || ip.is_unspecified(),
            None => ip.is_loopback() || ip.is_unspecified(),
        },
    };
    match address.port() {
        // Only a question which way it would go.
        0 => None,
        NAMES => Some(Refusal::LookUp(address)),
        _ => (!here).then_some(Refusal::Connect(address)),
    }
}

/// The address of a socket at a path, as the system takes it.
pub(super) fn of_path(path: &Path) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend_from_slice(path.as_os_str().as_bytes());
    address.push(0);
    address
}

/// The peer that an address names; nothing, if it is of another kind.
pub(super) fn parse(address: &[u8]) -> Option<Reached> {
    let family = u16::from_ne_bytes(address.get(..2)?.try_into().ok()?);
    let port = || Some(u16::from_be_bytes(address.get(2..4)?.try_into().ok()?));
    match i32::from(family) {
        libc::AF_INET => {
            let ip: [u8; 4] = address.get(4..8)?.try_into().ok()?;
            Some(Reached::Network(SocketAddr::new(Ipv4Addr::from(ip).into(), port()?)))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = address.get(8..24)?.try_into().ok()?;
            Some(Reached::Network(SocketAddr::new(Ipv6Addr::from(ip).into(), port()?)))
        }
        libc::AF_UNIX => {
            let name = address.get(2..)?;
            match name.split_first() {
                None => None,
                Some((0, name)) => Some(Reached::Abstract(name.to_vec())),
                Some(_) => {
                    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    Some(Reached::Path(OsStr::from_bytes(name.get(..end)?).into()))
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
    fn loopback_is_there_and_all_else_is_not() {
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
    fn an_address_is_read_as_the_system_has_it() {
        let mut four = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        four.extend([1, 187, 1, 2, 3, 4, 0, 0]);
        let Some(Reached::Network(address)) = parse(&four) else { panic!() };
        assert_eq!(address.to_string(), "1.2.3.4:443");
        let socket = |name: &[u8]| {
            let mut unix = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
            unix.extend(name);
            parse(&unix)
        };
        let path = |path: &str| Some(Reached::Path(path.into()));
        assert_eq!(socket(b"/run/docker.sock\0junk"), path("/run/docker.sock"));
        assert_eq!(socket(b"relative"), path("relative"));
        assert_eq!(socket(b"\0abstract"), Some(Reached::Abstract(b"abstract".to_vec())));
        assert_eq!(socket(b""), None);
        assert_eq!(parse(&of_path(Path::new("/x"))), path("/x"));
        assert!(is_asked_in_passing(Path::new("/run/nscd/socket")));
        assert!(parse(&four[..3]).is_none() && parse(&[]).is_none());
    }
}
