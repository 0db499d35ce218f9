//! The user at the other end of a loopback connection.
//!
//! Other users of the machine can connect to the port, and can see the arguments of processes, such as the address
//! that a browser is started with. So a ticket counts only for the user of this process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, SocketAddrV4};
use std::os::unix::fs::MetadataExt as _;

/// The connections of IPv4 sockets in this network namespace.
const CONNECTIONS: &str = "/proc/net/tcp";

/// The connections of IPv6 sockets. Those can have IPv4 addresses too, in mapped form.
const CONNECTIONS_V6: &str = "/proc/net/tcp6";

/// More than the lines of a busy machine.
const MAX_BYTES: u64 = 64 << 20;

/// Whether the user of this process is known to be at the other end of a connection from `peer` to `own`.
pub(crate) fn is_same_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let (SocketAddr::V4(peer), SocketAddr::V4(own)) = (peer, own) else { return false };
    let us = std::fs::metadata("/proc/self").map(|found| found.uid());
    owner(peer, own).is_some_and(|owner| us.is_ok_and(|us| owner == us))
}

/// The user of the socket with these addresses, as the kernel lists it.
fn owner(local: SocketAddrV4, remote: SocketAddrV4) -> Option<u32> {
    let shown = [local, remote].map(|address| hex(&address.ip().octets(), address.port()));
    let mapped =
        [local, remote].map(|address| hex(&address.ip().to_ipv6_mapped().octets(), address.port()));
    listed_owner(CONNECTIONS, &shown).or_else(|| listed_owner(CONNECTIONS_V6, &mapped))
}

/// The user in the line with these addresses.
fn listed_owner(table: &str, addresses: &[String; 2]) -> Option<u32> {
    let lines = BufReader::new(File::open(table).ok()?.take(MAX_BYTES)).lines();
    lines.map_while(Result::ok).find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        (words.get(1..3)? == addresses).then(|| words.get(7)?.parse().ok()).flatten()
    })
}

/// An address as the kernel writes it: numbers of four bytes, each in the order of memory.
fn hex(address: &[u8], port: u16) -> String {
    let (numbers, _) = address.as_chunks::<4>();
    let numbers = numbers.iter().map(|bytes| format!("{:08X}", u32::from_ne_bytes(*bytes)));
    format!("{}:{port:04X}", numbers.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    use super::*;

    /// A socket of each family connects to the same listener.
    const HOSTS: [&str; 2] = ["127.0.0.1", "::ffff:127.0.0.1"];

    fn us() -> u32 {
        std::fs::metadata("/proc/self").unwrap().uid()
    }

    #[test]
    fn the_owner_of_a_connection_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        for host in HOSTS {
            let client = TcpStream::connect((host, own.port()));
            // Some machines have no IPv6.
            let Ok(_client) = client else { continue };
            let (_stream, peer) = listener.accept().unwrap();
            let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (peer, own) else { panic!() };
            assert_eq!(owner(local, remote), Some(us()), "{host}");
            assert!(is_same_user(peer, own), "{host}");
        }
    }

    #[test]
    fn a_connection_that_is_not_listed_is_of_no_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_same_user("127.0.0.1:1".parse().unwrap(), listener.local_addr().unwrap()));
    }

    #[test]
    fn a_connection_of_another_user_is_noticed() {
        if us() != 0 || TcpListener::bind("[::1]:0").is_err() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        for host in HOSTS {
            let script = format!("exec 3<>/dev/tcp/{host}/{}; read -r line <&3", own.port());
            let mut client = Command::new("setpriv")
                .args(["--reuid=65534", "--clear-groups", "bash", "-c", &script])
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            let (stream, peer) = listener.accept().unwrap();
            assert!(!is_same_user(peer, own), "{host}");
            let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (peer, own) else { panic!() };
            assert_eq!(owner(local, remote), Some(65534), "{host}");
            drop(stream);
            client.wait().unwrap();
        }
    }
}
