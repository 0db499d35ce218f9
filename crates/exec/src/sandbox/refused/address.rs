//! Whom a call would reach.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::memory::Memory;
use crate::refusal::Refusal;
use crate::sandbox::kernel::Waiting;

/// The largest address that there is.
const ADDRESS: u64 = 128;

/// Where names are looked up. Nobody inside can listen there: it takes a right that no command has.
const NAMES: u16 = 53;

/// Services that libraries ask before they look for themselves. That they are not there is seen by every
/// other program, and stops none.
const ASKED_IN_PASSING: [&str; 4] =
    ["/run/nscd", "/var/run/nscd", "/run/systemd", "/var/run/systemd"];

/// Somebody who is to be reached.
pub(super) enum Reached {
    Network(SocketAddr),
    /// A program, by the path of its socket.
    Socket(PathBuf),
}

/// Whom a call would reach; nothing, if it is none of those, or to nobody who matters.
pub(super) fn reached(waiting: &Waiting) -> Option<Reached> {
    let (at, length) = match waiting.call {
        libc::SYS_connect => (waiting.arguments[1], waiting.arguments[2]),
        libc::SYS_sendto => (waiting.arguments[4], waiting.arguments[5]),
        _ => return None,
    };
    let length = usize::try_from(length.min(ADDRESS)).ok()?;
    parse(&Memory::of(waiting.thread).bytes(at, length).ok()?)
}

/// The refusal that it is to reach this address where there is nothing but loopback; nothing, if it is
/// none.
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

fn parse(address: &[u8]) -> Option<Reached> {
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
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            let path = Path::new(OsStr::from_bytes(name.get(..end)?));
            let in_passing = ASKED_IN_PASSING.iter().any(|asked| path.starts_with(asked));
            (path.is_absolute() && !in_passing).then(|| Reached::Socket(path.to_owned()))
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
            match parse(&unix) {
                Some(Reached::Socket(path)) => Some(path),
                _ => None,
            }
        };
        assert_eq!(socket(b"/run/docker.sock\0junk"), Some("/run/docker.sock".into()));
        assert_eq!(socket(b"\0abstract"), None);
        assert_eq!(socket(b"/run/nscd/socket"), None);
        assert!(parse(&four[..3]).is_none() && parse(&[]).is_none());
    }
}
