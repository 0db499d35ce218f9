//! The addresses that stand for hosts inside a network namespace.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::host::Host;

/// The block of addresses that stand for hosts: reserved for benchmarks, so no host has one of them.
#[derive(Debug, Clone, Copy)]
pub struct SyntheticBlock;

impl SyntheticBlock {
    /// The first address.
    pub const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
    /// The number of bits that all addresses have in common.
    pub const PREFIX_BITS: u8 = 15;

    /// The address as one of the block, also if it is written as an IPv6 address.
    fn find(address: IpAddr) -> Option<Ipv4Addr> {
        match address.to_canonical() {
            IpAddr::V4(address) if matches!(address.octets(), [198, 18 | 19, ..]) => Some(address),
            _ => None,
        }
    }
}

/// More hosts than a session uses. Beyond that, the oldest one is forgotten, and gets a new address when it is
/// looked up again.
const MAX_HOSTS: usize = 16 << 10;

/// Addresses of the block without the first and the last one. They are used in turn, so an address gets another
/// host only after all others were used.
const ADDRESSES: u32 = (1 << (32 - SyntheticBlock::PREFIX_BITS)) - 2;

/// The hosts of a namespace and their addresses.
#[derive(Debug, Default)]
pub(crate) struct SyntheticAddresses {
    hosts: HashMap<u32, Host>,
    numbers: HashMap<Host, u32>,
    /// The numbers of the hosts, oldest first.
    order: VecDeque<u32>,
    next: u32,
}

impl SyntheticAddresses {
    /// The address of a host.
    pub(crate) fn address_of(&mut self, host: &Host) -> Ipv4Addr {
        if let Some(number) = self.numbers.get(host) {
            return address(*number);
        }
        if self.order.len() >= MAX_HOSTS
            && let Some(oldest) = self.order.pop_front()
            && let Some(host) = self.hosts.remove(&oldest)
        {
            self.numbers.remove(&host);
        }
        let number = self.next;
        self.next = (number + 1) % ADDRESSES;
        self.order.push_back(number);
        self.hosts.insert(number, host.clone());
        self.numbers.insert(host.clone(), number);
        address(number)
    }

    /// The host that an address stands for.
    pub(crate) fn host_at(&self, address: Ipv4Addr) -> Option<&Host> {
        let first = u32::from(SyntheticBlock::FIRST) + 1;
        self.hosts.get(&u32::from(address).checked_sub(first)?)
    }
}

/// The address with a number.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(SyntheticBlock::FIRST) + 1 + number)
}

/// Whether an address is in the block.
pub(crate) fn synthetic(address: SocketAddr) -> Option<(Ipv4Addr, u16)> {
    SyntheticBlock::find(address.ip()).map(|ip| (ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u32) -> Host {
        Host::Name(format!("h{number}.example"))
    }

    #[test]
    fn each_host_has_one_address() {
        let mut table = SyntheticAddresses::default();
        let first = table.address_of(&host(0));
        assert_eq!(first, Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(table.address_of(&host(0)), first);
        for number in 0..100 {
            let address = table.address_of(&host(number));
            assert_eq!(table.host_at(address), Some(&host(number)));
            assert!(synthetic(SocketAddr::new(address.into(), 1)).is_some());
        }
        assert_eq!(table.host_at(SyntheticBlock::FIRST), None);
        assert_eq!(table.host_at(Ipv4Addr::new(198, 19, 255, 255)), None);
        assert_eq!(table.host_at(Ipv4Addr::LOCALHOST), None);
        assert!(synthetic("[::ffff:198.18.0.1]:1".parse().unwrap()).is_some());
        assert!(synthetic("198.20.0.1:1".parse().unwrap()).is_none());
    }

    /// A flood of names neither fails later ones nor gives an address a second host soon.
    #[test]
    fn the_oldest_hosts_are_forgotten() {
        let mut table = SyntheticAddresses::default();
        let first = table.address_of(&host(0));
        for number in 1..ADDRESSES {
            assert_ne!(table.address_of(&host(number)), first);
        }
        assert_eq!((table.hosts.len(), table.numbers.len()), (MAX_HOSTS, MAX_HOSTS));
        assert_eq!(table.host_at(first), None);
        let again = table.address_of(&host(0));
        assert_eq!(table.host_at(again), Some(&host(0)));
        assert_eq!(table.address_of(&host(ADDRESSES - 1)), Ipv4Addr::new(198, 19, 255, 254));
    }
}
