//! Host patterns.

use std::net::IpAddr;

use crate::name_pattern::name_matches;

/// A host, or several, and a port, or every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
    hosts: Hosts,
    /// `None` for every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    /// `example.com`, or `*.example.com` for all its subdomains.
    Name(String),
    /// `10.0.0.5`, or `10.0.0.0/8`: the address and the number of bits that count.
    Addresses(IpAddr, u8),
}

impl HostPattern {
    pub(super) fn parse(text: &str) -> Result<HostPattern, String> {
        let invalid = || {
            format!(
                "{text:?} can match nothing: a host is `example.com`, `*.example.com`, `10.0.0.5`, `10.0.0.0/8` or \
                 `[2001:db8::1]`, without scheme or path, with a port or without (`example.com:443`)"
            )
        };
        let (host, port) = split_port(text).ok_or_else(invalid)?;
        let port = match port {
            None | Some("*") => None,
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(invalid)?),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Some(hosts) = addresses(bare) {
            return Ok(HostPattern { hosts, port });
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*' | '_');
        let is_numeric =
            |host: &str| host.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '*'));
        // A name could be made to match a pattern that looks like an address.
        let has_empty_label = host.split('.').any(str::is_empty);
        if has_empty_label || !host.chars().all(is_plain) || (host != "*" && is_numeric(host)) {
            return Err(invalid());
        }
        Ok(HostPattern { hosts: Hosts::Name(host.to_ascii_lowercase()), port })
    }

    /// Whether it matches a host that is to be allowed: a `*` in front stands for any number of labels, and
    /// elsewhere for characters of one label.
    pub(super) fn allows(&self, host: &str, port: Option<u16>) -> bool {
        (self.port.is_none() || self.port == port)
            && match &self.hosts {
                Hosts::Name(pattern) => labels_match(pattern, host),
                Hosts::Addresses(..) => self.has_address(host),
            }
    }

    /// Whether it matches a host that is to be restricted. A `*` stands for any characters, and an unknown
    /// port may be any.
    pub(super) fn restricts(&self, host: &str, port: Option<u16>) -> bool {
        (self.port.is_none() || port.is_none() || self.port == port)
            && match &self.hosts {
                Hosts::Name(pattern) => name_matches(pattern, host),
                Hosts::Addresses(..) => self.has_address(host),
            }
    }

    pub(super) fn is_address(&self) -> bool {
        matches!(self.hosts, Hosts::Addresses(..))
    }

    fn has_address(&self, host: &str) -> bool {
        let Hosts::Addresses(address, bits) = &self.hosts else { return false };
        host_address(host).is_some_and(|host| same_bits(*address, host, *bits))
    }
}

/// Splits `host:port`. The port is `None` if there is none. Fails for an empty text.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if text.is_empty() {
        return None;
    }
    if text.starts_with('[') {
        let (host, rest) = text.split_at(text.find(']')? + 1);
        return match rest {
            "" => Some((host, None)),
            rest => Some((host, Some(rest.strip_prefix(':')?))),
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Some((text, None)),
        Some((host, port)) => Some((host, Some(port))),
        None => Some((text, None)),
    }
}

fn addresses(text: &str) -> Option<Hosts> {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = if text.contains('/') { bits.parse().ok()? } else { most };
    if bits > most {
        return None;
    }
    // An IPv4 address in an IPv6 address is the IPv4 address.
    match address.to_canonical() {
        canonical if canonical.is_ipv4() && address.is_ipv6() => {
            Some(Hosts::Addresses(canonical, bits.checked_sub(96)?))
        }
        canonical => Some(Hosts::Addresses(canonical, bits)),
    }
}

/// The address, if a host is one.
pub(crate) fn host_address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn same_bits(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let (one, other, width) = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (u128::from(u32::from(one)), u128::from(u32::from(other)), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (u128::from(one), u128::from(other), 128),
        _ => return false,
    };
    (one ^ other).checked_shr(width - u32::from(bits)).unwrap_or(0) == 0
}

fn labels_match(pattern: &str, host: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let is_address = host_address(host).is_some();
    let (front, pattern) = match pattern.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let (wanted, given) = (pattern.rsplit('.'), host.rsplit('.'));
    let count = wanted.clone().count();
    let is_long_enough = match given.clone().count() {
        labels if front => labels > count,
        labels => labels == count,
    };
    !is_address
        && is_long_enough
        && wanted.zip(given).all(|(wanted, label)| name_matches(wanted, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn patterns_allow_what_they_name() {
        for (text, host, port, expected) in [
            ("example.com", "example.com", 443, true),
            ("example.com", "www.example.com", 443, false),
            ("Example.com:443", "example.com", 443, true),
            ("example.com:443", "example.com", 80, false),
            ("example.com:*", "example.com", 80, true),
            ("*.example.com", "www.example.com", 1, true),
            ("*.example.com", "a.b.example.com", 1, true),
            ("*.example.com", "example.com", 1, false),
            ("*.example.com", "evilexample.com", 1, false),
            ("api-*.example.com", "api-1.example.com", 1, true),
            ("api-*.example.com", "api-x.evil.example.com", 1, false),
            ("example*", "example.evil.test", 1, false),
            ("*", "anything.test", 1, true),
            ("*", "10.0.0.5", 1, true),
            ("*:443", "anything.test", 80, false),
            ("10.0.0.5:5432", "10.0.0.5", 5432, true),
            ("10.0.0.5:5432", "10.0.0.5", 22, false),
            ("10.0.0.5", "10.0.0.5.example", 22, false),
            ("10.0.0.0/8", "10.9.8.7", 22, true),
            ("10.0.0.0/8", "11.0.0.1", 22, false),
            ("10.0.0.0/8:80", "10.0.0.1", 22, false),
            ("0.0.0.0/0", "1.2.3.4", 22, true),
            ("[fd00::/8]:443", "[fd12::1]", 443, true),
            ("fd00::1", "fd00::1", 443, true),
            ("::ffff:10.0.0.5", "10.0.0.5", 443, true),
            ("*.5", "10.0.0.5", 1, false),
        ] {
            let Ok(pattern) = HostPattern::parse(text) else {
                assert!(!expected, "{text}");
                continue;
            };
            assert_eq!(pattern.allows(host, Some(port)), expected, "{text} {host}:{port}");
        }
        assert!(!pattern("example.com:443").allows("example.com", None));
    }

    #[test]
    fn patterns_restrict_widely() {
        assert!(pattern("*evil*").restricts("a.evil.example", Some(1)));
        assert!(pattern("evil.example:443").restricts("evil.example", None));
        assert!(!pattern("evil.example:443").restricts("evil.example", Some(80)));
        assert!(pattern("169.254.0.0/16").restricts("169.254.169.254", Some(80)));
    }

    #[test]
    fn impossible_patterns_are_errors() {
        for text in [
            "",
            "https://x",
            "a/b",
            "a:b",
            "a:0",
            "a:99999",
            "10.0.0.*",
            "1.2.3",
            "10.0.0.0/33",
            "[::1",
            "[::1]x",
            "a b",
            "ä.example",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
