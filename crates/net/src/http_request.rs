//! Finds the host of an HTTP/1 request.

use crate::host::Host;

/// The largest head of a request that is accepted.
pub const MAX_HEAD_BYTES: usize = 64 << 10;

/// The longest method.
const MAX_METHOD: usize = 20;

/// The longest run of empty lines before a request.
const MAX_BLANK: usize = 256;

/// The beginning of a connection, read as HTTP/1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpRequest {
    /// More bytes are needed.
    Incomplete,
    /// It is not HTTP/1.
    Other,
    /// It is HTTP/1, and its head is invalid or too long.
    Malformed,
    /// The head is complete.
    Complete {
        /// The host that the request names, without a port. `None` if it names none.
        host: Option<Host>,
    },
}

impl HttpRequest {
    /// Reads the bytes that a client sent first.
    pub fn read(bytes: &[u8]) -> HttpRequest {
        // Servers skip empty lines before a request, and some accept odd methods and tabs.
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if blank > MAX_BLANK {
            return HttpRequest::Malformed;
        }
        let bytes = &bytes[blank..];
        let method = bytes.iter().take_while(|byte| is_method_byte(**byte)).count();
        match bytes.get(method) {
            _ if method > MAX_METHOD => return HttpRequest::Other,
            None => return HttpRequest::Incomplete,
            Some(b' ' | b'\t') if method > 0 => {}
            Some(_) => return HttpRequest::Other,
        }
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            let is_long = bytes.len() > MAX_HEAD_BYTES;
            return if is_long { HttpRequest::Malformed } else { HttpRequest::Incomplete };
        };
        let line = String::from_utf8_lossy(&bytes[..end]);
        let Some(target) = target(&line) else { return HttpRequest::Other };
        let Some(headers) = headers(&bytes[end + 1..]) else {
            let is_long = bytes.len() > MAX_HEAD_BYTES;
            return if is_long { HttpRequest::Malformed } else { HttpRequest::Incomplete };
        };
        match host(target, headers) {
            Some(host) => HttpRequest::Complete { host },
            None => HttpRequest::Malformed,
        }
    }
}

/// Whether a byte may be part of a method.
pub(crate) fn is_method_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte)
}

/// The target of a request line. `None` if it is no line of HTTP/1.
fn target(line: &str) -> Option<Target<'_>> {
    let (method, rest) = line.split_once([' ', '\t'])?;
    let (target, version) = rest.trim_end().rsplit_once([' ', '\t'])?;
    let target = Target { is_connect: method.eq_ignore_ascii_case("connect"), text: target.trim() };
    version.starts_with("HTTP/1.").then_some(target)
}

/// The target of a request.
struct Target<'a> {
    text: &'a str,
    /// Whether the request is for a tunnel to the target.
    is_connect: bool,
}

/// The lines of the headers, up to the empty line. `None` if they are incomplete.
fn headers(bytes: &[u8]) -> Option<&[u8]> {
    let mut start = 0;
    loop {
        let length = bytes.get(start..)?.iter().position(|byte| *byte == b'\n')?;
        let line = &bytes[start..start + length];
        if matches!(line, b"" | b"\r") {
            return Some(&bytes[..start]);
        }
        start += length + 1;
    }
}

/// The host of a request. `None` if the request names two, or an invalid one.
fn host(target: Target<'_>, headers: &[u8]) -> Option<Option<Host>> {
    let mut hosts = Vec::new();
    if target.is_connect {
        hosts.push(Host::of_authority(target.text)?);
    } else if let Some((_, rest)) = target.text.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        hosts.push(Host::of_authority(authority)?);
    }
    for line in headers.split(|byte| *byte == b'\n') {
        let name_length = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(name_length);
        // Servers disagree about blanks around the name, and about continued lines.
        if name.trim_ascii().eq_ignore_ascii_case(b"host") {
            let value = value.get(1..).unwrap_or_default();
            hosts.push(Host::of_authority(std::str::from_utf8(value.trim_ascii()).ok()?)?);
        }
    }
    let first = hosts.first().cloned();
    let is_same = hosts.iter().all(|host| Some(host) == first.as_ref());
    is_same.then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(name: &str) -> HttpRequest {
        HttpRequest::Complete { host: Host::parse(name) }
    }

    #[test]
    fn the_host_is_found() {
        for (request, host) in [
            ("GET / HTTP/1.1\r\nHost: Example.com:8080\r\n\r\nbody", "example.com"),
            ("POST /x?y HTTP/1.1\nA: b\nhOST:a.example.\n\n", "a.example"),
            ("GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example"),
            ("GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", "2001:db8::1"),
            ("GET / HTTP/1.0\r\n\r\n", ""),
        ] {
            assert_eq!(HttpRequest::read(request.as_bytes()), named(host), "{request}");
            let head = request.len() - if request.ends_with("body") { 4 } else { 0 };
            for length in 0..head {
                let part = &request.as_bytes()[..length];
                assert_eq!(HttpRequest::read(part), HttpRequest::Incomplete, "{length}");
            }
        }
    }

    #[test]
    fn two_hosts_are_refused() {
        for request in [
            "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\nHost : b.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\n host: b.example\r\n\r\n",
            "GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example b.example\r\n\r\n",
        ] {
            assert_eq!(HttpRequest::read(request.as_bytes()), HttpRequest::Malformed, "{request}");
        }
        let long = format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(MAX_HEAD_BYTES));
        assert_eq!(HttpRequest::read(long.as_bytes()), HttpRequest::Malformed);
    }

    #[test]
    fn other_protocols_are_told_apart() {
        for other in ["SSH-2.0-x\r\n", "EHLO me\r\n", "*1\r\n", "AMQP\0", "NICK a b\n", "\u{16}"] {
            assert_eq!(HttpRequest::read(other.as_bytes()), HttpRequest::Other, "{other}");
        }
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        assert_eq!(HttpRequest::read(preface), HttpRequest::Other);
        // Servers with a larger limit for the first line than others.
        let long = format!("GET /{} HTTP/1.1\r\nHost: b.example\r\n\r\n", "x".repeat(20_000));
        assert_eq!(HttpRequest::read(long.as_bytes()), named("b.example"));
        let long = format!("GET /{}", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(HttpRequest::read(long.as_bytes()), HttpRequest::Malformed);
        assert_eq!(HttpRequest::read(&[b'\n'; MAX_BLANK + 1]), HttpRequest::Malformed);
        let long = "A".repeat(100);
        assert_eq!(HttpRequest::read(long.as_bytes()), HttpRequest::Other);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            HttpRequest::read(&bytes);
            HttpRequest::read(&[b"GET / HTTP/1.1\r\n", bytes.as_slice()].concat());
        }
    }
}
