//! Asks the kernel whether an address belongs to this machine.
//!
//! The routes decide, and not the interfaces: a local route can make a whole block of addresses local.

use std::io;
use std::net::IpAddr;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// The length of the header of a message, and of the description of a route.
const HEADER: usize = 16;
const ROUTE: usize = 12;

/// The position of the kind in the description of a route.
const KIND: usize = HEADER + 7;

/// Whether packets to an address stay on this machine, or reach many. Fails if the kernel cannot be asked.
pub(crate) fn is_local(address: IpAddr) -> io::Result<bool> {
    const UNICAST: u8 = 1; // RTN_UNICAST
    const LOCAL_TO_MULTICAST: std::ops::RangeInclusive<u8> = UNICAST + 1..=5; // RTN_LOCAL … RTN_MULTICAST
    const NEW_ROUTE: u16 = 24; // RTM_NEWROUTE
    const ERROR: u16 = 2; // NLMSG_ERROR
    // Protocol 0 is NETLINK_ROUTE.
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    sendto(&socket, &request(address), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut reply = [0_u8; 4096];
    let (_, length) = recv(&socket, &mut reply, RecvFlags::empty())?;
    let reply = reply.get(..length).unwrap_or_default();
    let kind = reply.get(4..6).and_then(|bytes| Some(u16::from_ne_bytes(bytes.try_into().ok()?)));
    match (kind, reply.get(KIND)) {
        (Some(NEW_ROUTE), Some(kind)) => Ok(LOCAL_TO_MULTICAST.contains(kind)),
        // There is no route to it.
        (Some(ERROR), _) => Ok(false),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A request for the route to an address.
fn request(address: IpAddr) -> Vec<u8> {
    const GET_ROUTE: u16 = 26; // RTM_GETROUTE
    const REQUEST: u16 = 1; // NLM_F_REQUEST
    const DESTINATION: u16 = 1; // RTA_DST
    let (family, octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let attribute = 4 + octets.len();
    let length = HEADER + ROUTE + attribute;
    let mut message = Vec::with_capacity(length);
    // The header: length, type, flags, sequence number, sender.
    message.extend((length as u32).to_ne_bytes());
    message.extend(GET_ROUTE.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    // The route: family, bits of the destination, and nothing else.
    message.extend([family.as_raw() as u8, (octets.len() * 8) as u8]);
    message.extend([0; ROUTE - 2]);
    message.extend((attribute as u16).to_ne_bytes());
    message.extend(DESTINATION.to_ne_bytes());
    message.extend(octets);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel sends to all but the first of them from another address.
    #[test]
    fn addresses_of_local_routes_are_local() {
        for local in ["127.0.0.1", "127.9.9.9", "127.255.255.254", "::1", "224.0.0.1"] {
            assert!(is_local(local.parse().unwrap()).unwrap(), "{local}");
        }
        for other in ["192.0.2.1", "93.184.216.34", "2001:db8::1"] {
            assert!(!is_local(other.parse().unwrap()).unwrap(), "{other}");
        }
    }
}
