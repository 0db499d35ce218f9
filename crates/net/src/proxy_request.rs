//! Reads the request of a client to a proxy: CONNECT or another request of HTTP, or SOCKS version 5.
//!
//! A tunnel is confirmed before it is decided on. A refusal is then sent inside of it, so that programs print it as
//! for any other connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::http_request::MAX_HEAD_BYTES;

/// How long a client may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The port of HTTP.
const HTTP_PORT: u16 = 80;

/// Headers that are for the proxy, or that keep the connection open. The next request may be for another host.
const CONNECTION_HEADERS: [&str; 4] =
    ["connection", "proxy-connection", "keep-alive", "proxy-authorization"];

/// The host that a client wants to reach.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProxyRequest {
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The bytes that are for the host.
    pub(crate) first_bytes: Vec<u8>,
}

/// Reads a request, and answers it as far as the client waits for that. `None` if it is invalid.
pub(crate) fn read_request(client: &mut TcpStream) -> Option<ProxyRequest> {
    let mut reader = BoundedReader { client, until: Instant::now() + REQUEST_TIMEOUT };
    let mut first = [0];
    reader.read_exact(&mut first).ok()?;
    let request = match first {
        [5] => read_socks5(&mut reader),
        first => read_http(&mut reader, first.to_vec()),
    };
    let request = request.ok().flatten();
    if request.is_none() && first != [5] {
        let answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = client.write_all(answer.as_bytes());
    }
    client.set_read_timeout(None).ok()?;
    request
}

/// Reads until a deadline.
struct BoundedReader<'a> {
    client: &'a mut TcpStream,
    until: Instant,
}

impl BoundedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.client.set_read_timeout(Some(left))?;
        match self.client.read(buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            filled += self.read(&mut buffer[filled..])?;
        }
        Ok(())
    }
}

/// Reads a request of SOCKS version 5 after its first byte.
fn read_socks5(reader: &mut BoundedReader<'_>) -> io::Result<Option<ProxyRequest>> {
    const NO_AUTHENTICATION: u8 = 0;
    const NONE_ACCEPTED: u8 = 0xff;
    let mut count = [0];
    reader.read_exact(&mut count)?;
    let mut methods = vec![0; usize::from(count[0])];
    reader.read_exact(&mut methods)?;
    if !methods.contains(&NO_AUTHENTICATION) {
        reader.client.write_all(&[5, NONE_ACCEPTED])?;
        return Ok(None);
    }
    reader.client.write_all(&[5, NO_AUTHENTICATION])?;
    let mut head = [0; 4];
    reader.read_exact(&mut head)?;
    let [5, command, _, kind] = head else { return Ok(None) };
    let host = match kind {
        1 => {
            let mut address = [0; 4];
            reader.read_exact(&mut address)?;
            Some(Host::Address(Ipv4Addr::from(address).into()))
        }
        4 => {
            let mut address = [0; 16];
            reader.read_exact(&mut address)?;
            Host::parse(&Ipv6Addr::from(address).to_string())
        }
        3 => {
            let mut length = [0];
            reader.read_exact(&mut length)?;
            let mut name = vec![0; usize::from(length[0])];
            reader.read_exact(&mut name)?;
            std::str::from_utf8(&name).ok().and_then(Host::parse)
        }
        _ => None,
    };
    let mut port = [0; 2];
    reader.read_exact(&mut port)?;
    const CONNECT: u8 = 1;
    // Succeeded, command not supported, address not supported.
    let (answer, host) = match (command, host) {
        (CONNECT, Some(host)) => (0, Some(host)),
        (CONNECT, None) => (8, None),
        _ => (7, None),
    };
    reader.client.write_all(&[5, answer, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let port = u16::from_be_bytes(port);
    Ok(host.map(|host| ProxyRequest { host, port, first_bytes: Vec::new() }))
}

/// Reads a request of HTTP.
fn read_http(
    reader: &mut BoundedReader<'_>,
    mut bytes: Vec<u8>,
) -> io::Result<Option<ProxyRequest>> {
    let end = loop {
        if let Some(end) = head_end(&bytes) {
            break end;
        }
        if bytes.len() > MAX_HEAD_BYTES {
            return Ok(None);
        }
        let mut chunk = [0; 4096];
        let count = reader.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..count]);
    };
    let rest = bytes.split_off(end);
    let Some(parsed) = parse_head(&bytes) else { return Ok(None) };
    let (host, port, mut first_bytes) = match parsed {
        Parsed::Tunnel(host, port) => {
            reader.client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            (host, port, Vec::new())
        }
        Parsed::Forward(host, port, head) => (host, port, head),
    };
    first_bytes.extend(rest);
    Ok(Some(ProxyRequest { host, port, first_bytes }))
}

/// The length of a head with its empty line. `None` if it is incomplete.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\r\n\r\n"[..], b"\n\n"];
    let found = ends.iter().filter_map(|end| {
        let position = bytes.windows(end.len()).position(|window| window == *end)?;
        Some(position + end.len())
    });
    found.min()
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// A tunnel to a host.
    Tunnel(Host, u16),
    /// A request to a host, with the head to send there.
    Forward(Host, u16, Vec<u8>),
}

/// Parses the head of a request.
fn parse_head(head: &[u8]) -> Option<Parsed> {
    let head = std::str::from_utf8(head).ok()?;
    let (line, headers) = head.split_once('\n')?;
    let mut words = line.trim_end().split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Some(Parsed::Tunnel(host, port));
    }
    let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("HTTP://"))?;
    let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, path) = rest.split_at(length);
    let (host, port) = authority(place, Some(HTTP_PORT))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut forwarded = format!("{method} {slash}{path} {version}\r\n");
    for header in headers.lines().map(str::trim_end).filter(|header| !header.is_empty()) {
        let name = header.split(':').next().unwrap_or_default().trim();
        if !CONNECTION_HEADERS.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            forwarded += header;
            forwarded += "\r\n";
        }
    }
    // The client opens another connection for its next request.
    forwarded += "Connection: close\r\n\r\n";
    Some(Parsed::Forward(host, port, forwarded.into_bytes()))
}

/// The host and the port of `HOST:PORT`.
fn authority(text: &str, usual_port: Option<u16>) -> Option<(Host, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, usual_port?),
    };
    Some((Host::parse(host)?, port))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Sends bytes, and returns the request and the answer.
    fn exchange(sent: &[u8]) -> (Option<ProxyRequest>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(sent).unwrap();
        near.shutdown(std::net::Shutdown::Write).unwrap();
        let request = read_request(&mut far);
        drop(far);
        let mut answer = Vec::new();
        let _ = near.read_to_end(&mut answer);
        (request, answer)
    }

    #[test]
    fn tunnels_are_confirmed() {
        let (request, answer) = exchange(b"CONNECT A.example:443 HTTP/1.1\r\nHost: x\r\n\r\nhello");
        let request = request.unwrap();
        assert_eq!((request.host.to_string().as_str(), request.port), ("a.example", 443));
        assert_eq!(request.first_bytes, b"hello");
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        let (request, answer) = exchange(b"\x05\x02\x00\x02\x05\x01\x00\x03\x09a.example\x01\xbb");
        let request = request.unwrap();
        assert_eq!((request.host.to_string().as_str(), request.port), ("a.example", 443));
        assert_eq!(answer, b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0");
        let (request, _) = exchange(b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x05\x00\x50");
        assert_eq!(request.unwrap().host, Host::parse("10.0.0.5").unwrap());
    }

    #[test]
    fn requests_are_rewritten_for_the_host() {
        let (request, answer) = exchange(
            b"POST http://a.example:8080/x?y HTTP/1.1\r\nHost: a.example:8080\r\n\
              Proxy-Connection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        );
        let request = request.unwrap();
        assert_eq!((request.host.to_string().as_str(), request.port), ("a.example", 8080));
        let expected = "POST /x?y HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 2\r\n\
                        Connection: close\r\n\r\nok";
        assert_eq!(String::from_utf8(request.first_bytes).unwrap(), expected);
        assert!(answer.is_empty());
    }

    #[test]
    fn other_requests_are_refused() {
        for sent in [
            &b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"[..],
            b"CONNECT a.example HTTP/1.1\r\n\r\n",
            b"CONNECT a b:1 HTTP/1.1\r\n\r\n",
            b"GET https://a.example/ HTTP/1.1\r\n\r\n",
            b"CONNECT a.example:443",
            b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
            b"\x05\x01\x02",
            b"\x05\x01\x00\x05\x02\x00\x03\x01a\x00\x50",
        ] {
            let (request, _) = exchange(sent);
            assert_eq!(request, None, "{sent:?}");
        }
    }
}
