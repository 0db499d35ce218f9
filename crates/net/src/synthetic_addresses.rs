//! The addresses that stand for hosts inside a network namespace.

use std::collections::HashMap;
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

/// More hosts than a session uses. Beyond that, queries fail.
const MAX_HOSTS: u32 = 16 << 10;

/// The hosts of a namespace and their addresses.
#[derive(Debug, Default)]
pub(crate) struct SyntheticAddresses {
    hosts: Vec<Host>,
    numbers: HashMap<Host, u32>,
}

impl SyntheticAddresses {
    /// The address of a host. `None` if there are too many hosts.
    pub(crate) fn address_of(&mut self, host: &Host) -> Option<Ipv4Addr> {
        let first = u32::from(SyntheticBlock::FIRST) + 1;
        if let Some(number) = self.numbers.get(host) {
            return Some(Ipv4Addr::from(first + number));
        }
        let number = u32::try_from(self.hosts.len()).ok().filter(|count| *count < MAX_HOSTS)?;
        self.hosts.push(host.clone());
        self.numbers.insert(host.clone(), number);
        Some(Ipv4Addr::from(first + number))
    }

    /// The host that an address stands for.
    pub(crate) fn host_at(&self, address: Ipv4Addr) -> Option<&Host> {
        let first = u32::from(SyntheticBlock::FIRST) + 1;
        self.hosts.get(u32::from(address).checked_sub(first)? as usize)
    }
}

/// Whether an address is in the block.
pub(crate) fn synthetic(address: SocketAddr) -> Option<(Ipv4Addr, u16)> {
    SyntheticBlock::find(address.ip()).map(|ip| (ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_one_address() {
        let mut table = SyntheticAddresses::default();
        let host = |number: u32| Host::Name(format!("h{number}.example"));
        let first = table.address_of(&host(0)).unwrap();
        assert_eq!(first, Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(table.address_of(&host(0)), Some(first));
        for number in 0..MAX_HOSTS {
            let address = table.address_of(&host(number)).unwrap();
            assert_eq!(table.host_at(address), Some(&host(number)));
            assert!(synthetic(SocketAddr::new(address.into(), 1)).is_some());
        }
        assert_eq!(table.address_of(&host(MAX_HOSTS)), None);
        assert_eq!(table.host_at(SyntheticBlock::FIRST), None);
        assert_eq!(table.host_at(Ipv4Addr::new(198, 19, 255, 255)), None);
        assert_eq!(table.host_at(Ipv4Addr::LOCALHOST), None);
        assert!(synthetic("[::ffff:198.18.0.1]:1".parse().unwrap()).is_some());
        assert!(synthetic("198.20.0.1:1".parse().unwrap()).is_none());
    }
}
