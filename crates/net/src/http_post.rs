//! Sends one HTTP request to a server that the user configured, such as a collector of telemetry.
//!
//! Each request has its own connection. Everything is bounded: the time, and what is read of the response.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The maximum number of bytes read of a response.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

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
}

/// A request.
#[derive(Debug)]
pub struct HttpPost<'a> {
    /// Names and values of headers. They must have no control characters.
    pub headers: &'a [(String, String)],
    /// Its type.
    pub content_type: &'a str,
    /// The content.
    pub body: &'a [u8],
    /// The time limit for all of it.
    pub timeout: Duration,
    /// The file with the certificate authorities for https, in place of those of the system.
    pub authorities: Option<&'a PathBuf>,
}

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// Its status.
    pub status: u16,
    /// The beginning of its body. Empty if it came in chunks.
    pub body: Vec<u8>,
}

/// Sends a request. Fails with the reason if there is no response.
pub fn post(target: &HttpTarget, post: &HttpPost<'_>) -> Result<HttpResponse, String> {
    let until = Instant::now() + post.timeout;
    let stream = connect(target, until)?;
    let is_ipv6 = target.host.contains(':');
    let host = if is_ipv6 { format!("[{}]", target.host) } else { target.host.clone() };
    let mut request = format!(
        "POST {} HTTP/1.1\r\nHost: {host}:{}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n",
        target.path,
        target.port,
        post.content_type,
        post.body.len()
    );
    for (name, value) in post.headers {
        if name.chars().chain(value.chars()).any(char::is_control) {
            return Err("a header has a control character".to_owned());
        }
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    let mut bytes = request.into_bytes();
    bytes.extend_from_slice(post.body);
    if target.is_tls {
        exchange(tls(target, stream, post.authorities)?, &bytes)
    } else {
        exchange(stream, &bytes)
    }
}

fn connect(target: &HttpTarget, until: Instant) -> Result<TcpStream, String> {
    let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let addresses = (target.host.as_str(), target.port).to_socket_addrs();
    let addresses = addresses.map_err(|error| format!("{}: {error}", target.host))?;
    let mut problem = format!("{} has no address", target.host);
    for address in addresses {
        match TcpStream::connect_timeout(&address, left()) {
            Err(error) => problem = format!("{address}: {error}"),
            Ok(stream) => {
                let timeouts = stream
                    .set_read_timeout(Some(left()))
                    .and_then(|()| stream.set_write_timeout(Some(left())));
                return timeouts.map(|()| stream).map_err(|error| error.to_string());
            }
        }
    }
    Err(problem)
}

fn exchange(mut stream: impl Read + Write, request: &[u8]) -> Result<HttpResponse, String> {
    stream.write_all(request).and_then(|()| stream.flush()).map_err(|error| error.to_string())?;
    let mut response = Vec::new();
    // Some servers close a TLS connection without its last message.
    let read = stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response);
    match (parse(&response), read) {
        (Some(response), _) => Ok(response),
        (None, Err(error)) => Err(error.to_string()),
        (None, Ok(_)) => Err("the server did not answer with HTTP".to_owned()),
    }
}

/// A response, from its bytes.
fn parse(bytes: &[u8]) -> Option<HttpResponse> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    let status = words.next()?.parse().ok()?;
    let is_chunked = lines.any(|line| line.to_ascii_lowercase().starts_with("transfer-encoding:"));
    let body = if is_chunked { Vec::new() } else { bytes[end + 4..].to_vec() };
    Some(HttpResponse { status, body })
}

#[cfg(feature = "inspect")]
fn tls(
    target: &HttpTarget,
    stream: TcpStream,
    authorities: Option<&PathBuf>,
) -> Result<impl Read + Write, String> {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, StreamOwned};

    let trust = crate::inspect::SystemTrust::read(authorities.map(PathBuf::as_path), &[]);
    let roots = crate::inspect::root_store(trust.roots())?;
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::try_from(target.host.clone()).map_err(|error| error.to_string())?;
    let connection = ClientConnection::new(Arc::new(config), name);
    Ok(StreamOwned::new(connection.map_err(|error| error.to_string())?, stream))
}

#[cfg(not(feature = "inspect"))]
fn tls(_: &HttpTarget, _: TcpStream, _: Option<&PathBuf>) -> Result<std::io::Empty, String> {
    Err("this program was built without https".to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use proptest::prelude::*;

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

    fn answer(response: &'static [u8]) -> Result<HttpResponse, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"{}") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(response).unwrap();
            String::from_utf8(request).unwrap()
        });
        let headers = [("api-key".to_owned(), "k".to_owned())];
        let response = post(
            &HttpTarget::parse(&url).unwrap(),
            &HttpPost {
                headers: &headers,
                content_type: "application/json",
                body: b"{}",
                timeout: Duration::from_secs(60),
                authorities: None,
            },
        );
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /x HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        assert!(request.contains("\r\napi-key: k\r\n"), "{request}");
        response
    }

    #[test]
    fn a_request_has_its_headers_and_gets_a_response() {
        let ok = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(ok, Ok(HttpResponse { status: 200, body: b"abc".to_vec() }));
        let busy = answer(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
        assert_eq!(busy, Ok(HttpResponse { status: 503, body: Vec::new() }));
        assert!(answer(b"nonsense").is_err());
    }

    /// Only a server whose certificate the authorities signed gets the request.
    #[cfg(feature = "inspect")]
    #[allow(
        clippy::disallowed_methods,
        reason = "the test writes the file that the user would name"
    )]
    #[test]
    fn https_checks_the_certificate() {
        use std::sync::Arc;

        use base64::Engine as _;

        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (stream, _) = listener.accept().unwrap();
                let connection = rustls::ServerConnection::new(config.clone()).unwrap();
                let mut stream = rustls::StreamOwned::new(connection, stream);
                let mut request = [0; 4];
                // The client that does not trust the certificate ends the connection.
                if stream.read_exact(&mut request).is_ok() {
                    assert_eq!(&request, b"POST");
                    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("authority.pem");
        let body = base64::engine::general_purpose::STANDARD.encode(certificate.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
        std::fs::write(&file, pem).unwrap();
        let send = |authorities: Option<&PathBuf>| {
            let request = HttpPost {
                headers: &[],
                content_type: "application/json",
                body: b"{}",
                timeout: Duration::from_secs(60),
                authorities,
            };
            post(&HttpTarget::parse(&url).unwrap(), &request)
        };
        assert_eq!(send(Some(&file)).map(|response| response.status), Ok(204));
        // With the authorities of the system, if it has any.
        assert!(send(None).is_err());
        server.join().unwrap();
    }

    proptest! {
        #[test]
        fn any_response_has_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let mut response = b"HTTP/1.1 200 OK\r\n".to_vec();
            response.extend(&bytes);
            let _ = parse(&response);
        }
    }
}
