//! Tells public addresses from those that reach this machine, its network or a cloud's metadata service.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address. Only public addresses can be reached without a rule that names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// An address of the internet.
    Public,
    /// This machine, by a loopback address.
    Loopback,
    /// This machine, by an address of one of its interfaces.
    Own,
    /// A private network.
    Private,
    /// The link that this machine is on.
    LinkLocal,
    /// The metadata service of a cloud, which has credentials.
    Metadata,
    /// A group of machines.
    Multicast,
    /// An address that no machine has: unspecified, reserved or for documentation.
    Reserved,
}

impl AddressClass {
    /// The class of an address. Whether it belongs to this machine's interfaces is not looked up.
    pub fn of(address: IpAddr) -> AddressClass {
        match address.to_canonical() {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressClass::Public => "public",
            AddressClass::Loopback => "loopback",
            AddressClass::Own => "own",
            AddressClass::Private => "private",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Metadata => "metadata",
            AddressClass::Multicast => "multicast",
            AddressClass::Reserved => "reserved",
        })
    }
}

/// Metadata services at addresses that are not link-local, or are known by their own address.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254),
];

fn of_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.octets() {
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [192, 168, ..] => AddressClass::Private,
        [172, second, ..] if second & 0xf0 == 16 => AddressClass::Private,
        // Shared by the customers of a provider.
        [100, second, ..] if second & 0xc0 == 64 => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        [first, ..] if first & 0xf0 == 224 => AddressClass::Multicast,
        [0, ..] | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressClass::Reserved
        }
        [198, 18 | 19, ..] | [192, 88, 99, _] => AddressClass::Reserved,
        [first, ..] if first >= 240 => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Metadata;
    }
    let parts = address.segments();
    let embedded =
        |high: u16, low: u16| of_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Reserved,
        // IPv4 addresses in IPv6: compatible, translated, and by NAT64.
        [0, 0, 0, 0, 0 | 0xffff, 0 | 0xffff, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, 1, ..] => AddressClass::Private,
        // 6to4.
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, documentation, benchmarks, and overlay identifiers.
        [0x2001, 0 | 2 | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressClass::Reserved,
        [0x2001, second, ..] if second & 0xffe0 == 0x0020 => AddressClass::Reserved,
        [first, ..] if first & 0xffc0 == 0xfe80 => AddressClass::LinkLocal,
        [first, ..] if first & 0xffc0 == 0xfec0 => AddressClass::Private,
        [first, ..] if first & 0xfe00 == 0xfc00 => AddressClass::Private,
        [first, ..] if first & 0xff00 == 0xff00 => AddressClass::Multicast,
        [first, ..] if first & 0xe000 == 0x2000 => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_their_class_in_every_form() {
        use AddressClass::*;
        for (address, class) in [
            ("93.184.216.34", Public),
            ("127.0.0.1", Loopback),
            ("127.255.0.9", Loopback),
            ("10.0.0.5", Private),
            ("172.15.0.1", Public),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("100.128.0.1", Public),
            ("169.254.1.1", LinkLocal),
            ("169.254.169.254", Metadata),
            ("168.63.129.16", Metadata),
            ("100.100.100.200", Metadata),
            ("224.0.0.1", Multicast),
            ("239.1.1.1", Multicast),
            ("0.0.0.0", Reserved),
            ("0.1.2.3", Reserved),
            ("255.255.255.255", Reserved),
            ("198.18.0.1", Reserved),
            ("192.0.2.1", Reserved),
            ("::", Reserved),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:0:127.0.0.1", Loopback),
            ("::127.0.0.1", Loopback),
            ("::ffff:169.254.169.254", Metadata),
            ("64:ff9b::a00:5", Private),
            ("64:ff9b::169.254.169.254", Metadata),
            ("64:ff9b::93.184.216.34", Public),
            ("2002:7f00:1::", Loopback),
            ("2002:a00:5::1", Private),
            ("2001:0:1::1", Reserved),
            ("2001:db8::1", Reserved),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("fc00::1", Private),
            ("fd00:ec2::254", Metadata),
            ("ff02::1", Multicast),
            ("2606:4700::1", Public),
            ("2001:4860:4860::8888", Public),
            ("100::1", Reserved),
            ("4000::1", Reserved),
        ] {
            assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
        }
    }
}
