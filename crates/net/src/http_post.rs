//! Sends one HTTP request to a server that the user configured, such as a collector of telemetry.
//!
//! Each request has its own connection. Everything is bounded: the time, and what is read of the response.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::own_connection::{self, HttpTarget};

/// The maximum number of bytes read of a response.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

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
    let length = post.body.len().to_string();
    let own = [("Content-Type", post.content_type), ("Content-Length", &length)];
    let given = post.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut bytes = target.head("POST", own.into_iter().chain(given))?.into_bytes();
    bytes.extend_from_slice(post.body);
    exchange(own_connection::open(target, until, post.authorities)?, &bytes)
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use proptest::prelude::*;

    use super::*;

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
