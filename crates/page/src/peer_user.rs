//! The user at the other end of a loopback connection.
//!
//! Other users of the machine can connect to the port, and can see the arguments of processes, such as the address
//! that a browser is started with. So a ticket counts only for the user of this process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, SocketAddrV4};
use std::os::unix::fs::MetadataExt as _;

/// The connections of this network namespace.
const CONNECTIONS: &str = "/proc/net/tcp";

/// More than the lines of a busy machine.
const MAX_BYTES: u64 = 64 << 20;

/// Whether another user is known to be at the other end of a connection from `peer` to `own`.
pub(crate) fn is_other_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let (SocketAddr::V4(peer), SocketAddr::V4(own)) = (peer, own) else { return false };
    let us = std::fs::metadata("/proc/self").map(|found| found.uid());
    match (owner(peer, own), us) {
        (Some(owner), Ok(us)) => owner != us,
        _ => false,
    }
}

/// The user of the socket with these addresses, as the kernel lists it.
fn owner(local: SocketAddrV4, remote: SocketAddrV4) -> Option<u32> {
    let wanted = [hex(local), hex(remote)];
    let lines = BufReader::new(File::open(CONNECTIONS).ok()?.take(MAX_BYTES)).lines();
    lines.map_while(Result::ok).find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        (words.get(1..3)? == wanted).then(|| words.get(7)?.parse().ok()).flatten()
    })
}

/// An address as the kernel writes it: the bytes in the order of memory.
fn hex(address: SocketAddrV4) -> String {
    let number = u32::from_ne_bytes(address.ip().octets());
    format!("{number:08X}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_owner_of_a_connection_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, own) = (client.local_addr().unwrap(), listener.local_addr().unwrap());
        let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (peer, own) else { panic!() };
        let us = std::fs::metadata("/proc/self").unwrap().uid();
        assert_eq!(owner(local, remote), Some(us));
        assert!(!is_other_user(peer, own));
        assert_eq!(owner("127.0.0.1:1".parse().unwrap(), remote), None);
    }
}
