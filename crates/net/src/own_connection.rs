//! Connections of this program itself, to servers that the user configured.
//!
//! Each request has its own connection, and all of it has one time limit.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::server_dial::connect_tcp;

/// The maximum length of an address.
const MAX_URL_BYTES: usize = 4_096;

/// The address of a server: `http://HOST[:PORT][/PATH]` or `https://…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTarget {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
}

impl HttpTarget {
    /// Parses an address. Fails with the reason.
    pub fn parse(url: &str) -> Result<HttpTarget, String> {
        let wrong = |why: &str| format!("{url} is not an address of a server: {why}");
        if url.len() > MAX_URL_BYTES || url.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
            return Err(wrong("it is too long, or has characters that an address cannot have"));
        }
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err("the address has a user; give credentials in a header".to_owned());
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inside) => {
                let (host, rest) =
                    inside.split_once(']').ok_or_else(|| wrong("`[` without `]`"))?;
                (host, rest.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let usual = if is_tls { 443 } else { 80 };
        let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| wrong("its port")))?;
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let path = path.split('#').next().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(HttpTarget { is_tls, host: host.to_owned(), port, path: format!("{slash}{path}") })
    }

    /// The address of something below this one.
    pub fn below(&self, name: &str) -> HttpTarget {
        let path = format!("{}/{name}", self.path.trim_end_matches('/'));
        HttpTarget { path, ..self.clone() }
    }

    /// Whether nobody on the way can read or change what is sent: by TLS, or because it does not leave this machine.
    pub fn is_confidential(&self) -> bool {
        let is_own = |host: &str| {
            let address = host.parse::<IpAddr>();
            host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
        };
        self.is_tls || is_own(&self.host)
    }

    /// The value of the header `Host`.
    pub fn host_header(&self) -> String {
        let is_ipv6 = self.host.contains(':');
        let host = if is_ipv6 { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.is_tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// The path, with its query.
    pub fn path(&self) -> &str {
        &self.path
    }

    #[cfg(feature = "inspect")]
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    #[cfg(feature = "inspect")]
    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The head of a request on a connection of its own. Fails if a header has a control character.
    pub(crate) fn head<'a>(
        &self,
        method: &str,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<String, String> {
        let (path, host) = (&self.path, self.host_header());
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers {
            if name.chars().chain(value.chars()).any(char::is_control) {
                return Err("a header has a control character".to_owned());
            }
            head += &format!("{name}: {value}\r\n");
        }
        Ok(head + "\r\n")
    }
}

/// A connection with a time limit for all that is read and written.
struct TimedStream {
    stream: TcpStream,
    until: Instant,
}

impl TimedStream {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Bytes in both directions.
pub(crate) trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// Connects to a server, with TLS if its address says so. `authorities` is the file with the certificate authorities, in
/// place of those of the system.
pub(crate) fn open(
    target: &HttpTarget,
    until: Instant,
    authorities: Option<&PathBuf>,
) -> Result<Box<dyn ReadWrite>, String> {
    let connect = || {
        let stream = connect_tcp(&target.host, target.port, until)?;
        Ok(TimedStream { stream, until })
    };
    if target.is_tls {
        Ok(Box::new(tls(target, &connect, authorities)?))
    } else {
        Ok(Box::new(connect()?))
    }
}

type Connect<'a> = dyn Fn() -> Result<TimedStream, String> + 'a;

/// Connects only if the authorities can be used.
#[cfg(feature = "inspect")]
fn tls(
    target: &HttpTarget,
    connect: &Connect<'_>,
    authorities: Option<&PathBuf>,
) -> Result<impl Read + Write + use<>, String> {
    let authorities = authorities.map(PathBuf::as_path);
    let authorities = crate::server_authorities::server_authorities(authorities)?;
    let connection = crate::server_dial::tls_client(&target.host, authorities)?;
    Ok(rustls::StreamOwned::new(connection, connect()?))
}

#[cfg(not(feature = "inspect"))]
fn tls(_: &HttpTarget, _: &Connect<'_>, _: Option<&PathBuf>) -> Result<io::Empty, String> {
    Err("this program was built without https".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let target = |is_tls, host: &str, port, path: &str| HttpTarget {
            is_tls,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        };
        for (url, expected) in [
            ("http://localhost:4318", target(false, "localhost", 4318, "/")),
            ("https://o.example/x/", target(true, "o.example", 443, "/x/")),
            ("http://[::1]:1/a?b=c#d", target(false, "::1", 1, "/a?b=c")),
            ("http://h?x", target(false, "h", 80, "/?x")),
        ] {
            assert_eq!(HttpTarget::parse(url), Ok(expected), "{url}");
        }
        let below = |url: &str| HttpTarget::parse(url).unwrap().below("v1/traces").path;
        assert_eq!(below("http://h"), "/v1/traces");
        assert_eq!(below("http://h/x/"), "/x/v1/traces");
        for url in [
            "",
            "localhost:4318",
            "http://",
            "http://:80",
            "http://h:x",
            "http://u:p@h",
            "http://[::1",
            "http://h /",
            "http://h/\r\nX: y",
            "grpc://h",
        ] {
            assert!(HttpTarget::parse(url).is_err(), "{url}");
        }
    }

    #[cfg(feature = "inspect")]
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test writes its file")]
    fn unusable_authorities_are_not_replaced_by_those_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let (empty, missing) =
            (directory.path().join("empty.pem"), directory.path().join("missing.pem"));
        std::fs::write(&empty, "no certificate\n").unwrap();
        let target = HttpTarget::parse("https://127.0.0.1:1").unwrap();
        let until = Instant::now() + Duration::from_secs(600);
        for (file, problem) in [
            (directory.path().to_owned(), "cannot be read"),
            (missing, "cannot be read"),
            (empty, "has no certificate"),
        ] {
            let refusal = open(&target, until, Some(&file)).err().unwrap();
            assert_eq!(refusal, format!("{} {problem}", file.display()));
        }
    }

    #[test]
    fn only_tls_and_this_machine_are_confidential() {
        for (url, expected) in [
            ("https://x.example", true),
            ("http://localhost:1", true),
            ("http://127.0.0.9", true),
            ("http://[::1]:1", true),
            ("http://x.example", false),
            ("http://localhost.x.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(HttpTarget::parse(url).unwrap().is_confidential(), expected, "{url}");
        }
    }
}
