//! Sets up a new network namespace: the loopback interface, the block of addresses that stand for hosts, and
//! the sockets for the host's [gateway](crate::Gateway).
//!
//! The sockets are made inside, without privileges. The runtime configures the namespace with them from
//! outside: the kernel gives the owner of a user namespace all rights over its network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

use crate::gateway::NetworkSockets;

/// The addresses that stand for hosts: a block that is reserved for benchmarks.
const BLOCK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const BLOCK_BITS: u8 = 15;

/// The address of the DNS server in `resolv.conf`.
const DNS_SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53);

/// TCP sockets that are made at a time for a session, which can have more later.
pub(crate) const SESSION_SOCKETS: usize = 32;

/// TCP sockets for a command with its own network namespace, which cannot have more.
pub(super) const COMMAND_SOCKETS: usize = 128;

/// Request flags: `NLM_F_REQUEST | NLM_F_ACK`, and with `NLM_F_CREATE`.
const REQUEST: u16 = 1 | 4;
const CREATE: u16 = REQUEST | 0x400;

/// The index of the loopback interface, which is the first of each namespace.
const LOOPBACK: u32 = 1;

/// Sets the loopback interface to *up*.
pub(super) fn start_loopback() -> io::Result<()> {
    const SET_LINK: u16 = 16; // RTM_NEWLINK
    const UP: u32 = 1; // IFF_UP
    let mut body = Vec::with_capacity(16);
    // No family, no type; its index, its flags, and the mask of flags to change.
    body.extend([0; 4]);
    body.extend(LOOPBACK.to_ne_bytes());
    body.extend(UP.to_ne_bytes());
    body.extend(UP.to_ne_bytes());
    request(&netlink_socket()?, SET_LINK, REQUEST, &body)
}

/// Makes all addresses of the block local.
fn add_local_block(netlink: &OwnedFd) -> io::Result<()> {
    const NEW_ROUTE: u16 = 24; // RTM_NEWROUTE
    const IPV4: u8 = 2; // AF_INET
    const TABLE: u8 = 255; // RT_TABLE_LOCAL
    const BY_ADMINISTRATOR: u8 = 4; // RTPROT_STATIC
    const THIS_HOST: u8 = 254; // RT_SCOPE_HOST
    const LOCAL: u8 = 2; // RTN_LOCAL
    const DESTINATION: u16 = 1; // RTA_DST
    const INTERFACE: u16 = 4; // RTA_OIF
    const ATTRIBUTE_LENGTH: u16 = 8;
    let mut body = vec![IPV4, BLOCK_BITS, 0, 0, TABLE, BY_ADMINISTRATOR, THIS_HOST, LOCAL];
    body.extend([0; 4]);
    for (kind, value) in [(DESTINATION, BLOCK.octets()), (INTERFACE, LOOPBACK.to_ne_bytes())] {
        body.extend(ATTRIBUTE_LENGTH.to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(value);
    }
    request(netlink, NEW_ROUTE, CREATE, &body)
}

/// Whether an address stands for a host.
pub(crate) fn is_stand_in(address: IpAddr) -> bool {
    matches!(address.to_canonical(), IpAddr::V4(address) if matches!(address.octets(), [198, 18 | 19, ..]))
}

/// Makes the sockets for a gateway in the network namespace of this process.
pub(super) fn make_sockets(count: usize) -> io::Result<Vec<OwnedFd>> {
    let dns = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut sockets = vec![netlink_socket()?, dns];
    sockets.extend(make_tcp_sockets(count)?);
    Ok(sockets)
}

/// Makes TCP sockets that are not bound.
pub(crate) fn make_tcp_sockets(count: usize) -> io::Result<Vec<OwnedFd>> {
    let new = || socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    Ok((0..count).map(|_| new()).collect::<rustix::io::Result<_>>()?)
}

/// Configures the network namespace of sockets that [`make_sockets`] made. `None` if there are none.
pub(crate) fn configure(
    sockets: impl IntoIterator<Item = OwnedFd>,
) -> io::Result<Option<NetworkSockets>> {
    let mut sockets = sockets.into_iter();
    let (Some(netlink), Some(dns)) = (sockets.next(), sockets.next()) else { return Ok(None) };
    add_local_block(&netlink)?;
    bind(&dns, &DNS_SERVER)?;
    Ok(Some(NetworkSockets { dns, unbound: sockets.collect(), more: None }))
}

fn netlink_socket() -> io::Result<OwnedFd> {
    // Protocol 0 is NETLINK_ROUTE.
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?)
}

/// Sends a request to the kernel and reads its reply.
fn request(netlink: &OwnedFd, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    const HEADER: usize = 16;
    let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(HEADER + body.len());
    // The header: length, type, flags, sequence number, sender.
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    // With a destination, the rights of this process count, and not those of the one that made the socket.
    sendto(netlink, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 256];
    let (_, length) = recv(netlink, &mut answer, RecvFlags::empty())?;
    // The reply is a header and a number: zero, or a negative errno.
    let number = answer.get(..length).and_then(|answer| answer.get(16..20)?.try_into().ok());
    match number.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
