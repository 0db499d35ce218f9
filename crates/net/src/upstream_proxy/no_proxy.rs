//! The hosts that are reached without a proxy.

use std::net::IpAddr;

use crate::host::{Host, normalized_name};

/// The most entries that are read.
const MAX_ENTRIES: usize = 1_000;

/// The hosts of `NO_PROXY`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NoProxy {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    /// `None` for every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    /// A name and all names below it.
    Name(String),
    /// Addresses with the same first bits.
    Network(IpAddr, u32),
}

impl NoProxy {
    /// Parses names, addresses and networks, separated by commas. Others are ignored, as programs do.
    pub(super) fn parse(text: &str) -> NoProxy {
        let words = text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
        NoProxy { entries: words.take(MAX_ENTRIES).filter_map(Entry::parse).collect() }
    }

    /// Whether a host is reached without a proxy.
    pub(super) fn contains(&self, host: &Host, port: u16) -> bool {
        let is_in = |entry: &Entry| {
            entry.port.is_none_or(|only| only == port)
                && match (&entry.hosts, host) {
                    (Hosts::All, _) => true,
                    (Hosts::Name(name), Host::Name(host)) => {
                        let below = host.strip_suffix(name.as_str());
                        below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
                    }
                    (Hosts::Network(network, bits), Host::Address(address)) => {
                        is_same_network(*network, *address, *bits)
                    }
                    _ => false,
                }
        };
        self.entries.iter().any(is_in)
    }
}

impl Entry {
    fn parse(word: &str) -> Option<Entry> {
        if word == "*" {
            return Some(Entry { hosts: Hosts::All, port: None });
        }
        if let Some((network, bits)) = word.split_once('/') {
            let hosts = Hosts::Network(network.parse().ok()?, bits.parse().ok()?);
            return Some(Entry { hosts, port: None });
        }
        let (host, port) = match word.rsplit_once(':') {
            // An IPv6 address has more colons.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, Some(port.parse().ok()?))
            }
            _ => (word, None),
        };
        if let Some(Host::Address(address)) = Host::parse(host) {
            return Some(Entry { hosts: Hosts::Network(address, u32::MAX), port });
        }
        let name = host.strip_prefix('*').unwrap_or(host);
        let name = normalized_name(name.strip_prefix('.').unwrap_or(name))?;
        Some(Entry { hosts: Hosts::Name(name), port })
    }
}

/// Whether the first bits of two addresses are the same.
fn is_same_network(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let differing = one.to_bits() ^ other.to_bits();
            differing.leading_zeros() >= bits.min(u32::BITS)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let differing = one.to_bits() ^ other.to_bits();
            differing.leading_zeros() >= bits.min(u128::BITS)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_networks_are_found() {
        let list = NoProxy::parse(
            "localhost, .a.example,b.example:8080 *.c.example,10.0.0.0/8,192.0.2.7,2001:db8::/32,[::1]:9,x/y",
        );
        let contains = |host: &str, port| list.contains(&Host::parse(host).unwrap(), port);
        for host in [
            "localhost",
            "a.example",
            "x.y.a.example",
            "z.c.example",
            "10.1.2.3",
            "192.0.2.7",
            "2001:db8::5",
        ] {
            assert!(contains(host, 443), "{host}");
        }
        for host in ["xa.example", "b.example", "11.0.0.1", "192.0.2.8", "2001:db9::1", "::1"] {
            assert!(!contains(host, 443), "{host}");
        }
        assert!(contains("b.example", 8080) && contains("::1", 9));
        assert!(NoProxy::parse("*").contains(&Host::parse("any.example").unwrap(), 1));
    }
}
