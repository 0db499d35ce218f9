//! A host: a name or an address.

use std::fmt;
use std::net::IpAddr;

/// The longest name.
const MAX_NAME: usize = 253;

/// A host that a program connects to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lower case, without a final dot.
    Name(String),
    /// An address. IPv4 addresses are never written as IPv6 addresses.
    Address(IpAddr),
}

impl Host {
    /// Parses a name or an address. `None` if it is neither.
    pub fn parse(text: &str) -> Option<Host> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Some(Host::Address(address.to_canonical()));
        }
        normalized_name(text).filter(|_| bare.is_none()).map(Host::Name)
    }

    /// Parses the host of `host:port` or `host`.
    pub(crate) fn of_authority(text: &str) -> Option<Host> {
        let text = text.rsplit('@').next().unwrap_or(text);
        let host = match text.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => text,
        };
        Host::parse(host)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host name in lower case, without a final dot. `None` if it is no host name.
pub(crate) fn normalized_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(plain)
    };
    // `127.1` and `0x7f000001` are addresses to some programs.
    let is_number = |label: &str| {
        let digits = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        let is_hexadecimal =
            digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        is_hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_name = name.len() <= MAX_NAME
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number);
    is_name.then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_parsed() {
        for (text, shown) in [
            ("Example.COM.", "example.com"),
            ("a_b-c", "a_b-c"),
            ("10.0.0.5", "10.0.0.5"),
            ("[::1]", "[::1]"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("::ffff:10.0.0.5", "10.0.0.5"),
        ] {
            assert_eq!(Host::parse(text).unwrap().to_string(), shown);
        }
        let long = format!("{}.example", "a".repeat(64));
        for text in ["", ".", "a..b", "a b", "a/b", "[a]", "ä.example", "a:b", &long] {
            assert_eq!(Host::parse(text), None, "{text}");
        }
        assert_eq!(Host::of_authority("me@a.example:80"), Host::parse("a.example"));
        assert_eq!(Host::of_authority("[::1]:80"), Host::parse("::1"));
        assert_eq!(Host::of_authority("a.example:x"), None);
    }
}
