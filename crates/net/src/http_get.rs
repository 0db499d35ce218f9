//! Reads one document from a server that the user configured, such as the keys of an identity provider.
//!
//! Redirects are not followed: the address is the one that the user trusts.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::own_connection::{self, HttpTarget};

/// The maximum size of the head of a response.
pub(crate) const MAX_HEAD_BYTES: usize = 64 << 10;

/// A request for a document.
#[derive(Debug)]
pub struct HttpGet<'a> {
    /// Names and values of headers. They must have no control characters.
    pub headers: &'a [(String, String)],
    /// The maximum size of the document.
    pub max_bytes: usize,
    /// The time limit for all of it.
    pub timeout: Duration,
    /// The file with the certificate authorities for https, in place of those of the system.
    pub authorities: Option<&'a PathBuf>,
}

/// Reads a document. Fails with the reason if the response is not a whole document of the allowed size.
pub fn get(target: &HttpTarget, get: &HttpGet<'_>) -> Result<Vec<u8>, String> {
    let until = Instant::now() + get.timeout;
    let headers = get.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let head = target.head("GET", [("Accept", "application/json")].into_iter().chain(headers))?;
    let mut stream = own_connection::open(target, until, get.authorities)?;
    let failed = |error: std::io::Error| error.to_string();
    stream.write_all(head.as_bytes()).and_then(|()| stream.flush()).map_err(failed)?;
    let (mut response, mut chunk) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let read = stream.read(&mut chunk).map_err(failed)?;
        response.extend_from_slice(&chunk[..read]);
        if let Some(body) = body_of(&response, read == 0, get.max_bytes)? {
            return Ok(body);
        }
    }
}

/// How the end of a body is found.
pub(crate) enum Length {
    Bytes(usize),
    Chunks,
    UntilClosed,
}

/// The body in the bytes of a response. `None` if more bytes are needed; after the last of them that is an error.
fn body_of(response: &[u8], is_end: bool, max: usize) -> Result<Option<Vec<u8>>, String> {
    let incomplete = || if is_end { Err("the response ended early".to_owned()) } else { Ok(None) };
    let beginning = &response[..response.len().min(MAX_HEAD_BYTES)];
    let Some(end) = beginning.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if response.len() >= MAX_HEAD_BYTES {
            Err("the head of the response is too large".to_owned())
        } else {
            incomplete()
        };
    };
    let length = length_of(&response[..end])?;
    let body = &response[end + 4..];
    let too_large = || format!("the document has more than {max} bytes");
    match length {
        Length::Bytes(length) if length > max => Err(too_large()),
        Length::Bytes(length) => match body.get(..length) {
            Some(body) => Ok(Some(body.to_vec())),
            None => incomplete(),
        },
        Length::Chunks => match unchunk(body, max).map_err(|too_large_or_malformed| {
            too_large_or_malformed.map_or_else(too_large, str::to_owned)
        })? {
            Some(body) => Ok(Some(body)),
            None => incomplete(),
        },
        Length::UntilClosed if body.len() > max => Err(too_large()),
        Length::UntilClosed => Ok(is_end.then(|| body.to_vec())),
    }
}

/// The beginning of a response.
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) length: Length,
    /// Whether the server says nothing against another request on the connection.
    #[cfg_attr(
        not(feature = "inspect"),
        expect(dead_code, reason = "only connections for several requests need it")
    )]
    pub(crate) keeps_open: bool,
}

fn length_of(head: &[u8]) -> Result<Length, String> {
    let head = response_head(head)?;
    match head.status {
        200 => Ok(head.length),
        status => Err(format!("HTTP status {status}")),
    }
}

/// Reads the head of a response, without its empty line.
pub(crate) fn response_head(head: &[u8]) -> Result<ResponseHead, String> {
    let malformed = || "the server did not answer with HTTP".to_owned();
    let head = std::str::from_utf8(head).map_err(|_| malformed())?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let version = words.next().filter(|version| version.starts_with("HTTP/1."));
    let mut keeps_open = version.ok_or_else(malformed)? == "HTTP/1.1";
    let status =
        words.next().and_then(|status| status.parse::<u16>().ok()).ok_or_else(malformed)?;
    let mut length = Length::UntilClosed;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => length = Length::Chunks,
            "transfer-encoding" => return Err("an unknown transfer encoding".to_owned()),
            "content-encoding" if !value.eq_ignore_ascii_case("identity") => {
                return Err("the document is compressed".to_owned());
            }
            "content-length" if matches!(length, Length::UntilClosed) => {
                length = Length::Bytes(value.parse().map_err(|_| malformed())?);
            }
            "content-length" if matches!(length, Length::Bytes(_)) => return Err(malformed()),
            "connection" => keeps_open &= !value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    Ok(ResponseHead { status, length, keeps_open })
}

/// Joins chunks. `None` if the last one is missing. The error is `None` if there are more than `max` bytes, and
/// otherwise what is wrong with the chunks.
pub(crate) fn unchunk(
    mut rest: &[u8],
    max: usize,
) -> Result<Option<Vec<u8>>, Option<&'static str>> {
    const MALFORMED: Option<&str> = Some("a chunk of the response is malformed");
    /// The size in hexadecimal, and extensions that nobody uses.
    const MAX_SIZE_LINE: usize = 1_024;
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else {
            return if rest.len() > MAX_SIZE_LINE { Err(MALFORMED) } else { Ok(None) };
        };
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| MALFORMED)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = usize::from_str_radix(digits, 16).ok().filter(|_| is_number).ok_or(MALFORMED)?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Ok(Some(body));
        }
        if size > max - body.len() {
            return Err(None);
        }
        let Some((chunk, after)) = rest.split_at_checked(size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        rest = match after {
            [b'\r', b'\n', rest @ ..] => rest,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(MALFORMED),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use proptest::prelude::*;

    use super::*;

    fn of(response: &str, is_end: bool) -> Result<Option<String>, String> {
        let body = body_of(response.as_bytes(), is_end, 10)?;
        Ok(body.map(|body| String::from_utf8(body).unwrap()))
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        let ok = "HTTP/1.1 200 OK\r\n";
        for (rest, is_end, expected) in [
            ("Content-Length: 3\r\n\r\nabcdef", false, Some("abc")),
            ("Content-Length: 3\r\n\r\nab", false, None),
            ("\r\nabc", false, None),
            ("\r\nabc", true, Some("abc")),
            (
                "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
                false,
                Some("abc"),
            ),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", false, None),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\na", false, None),
        ] {
            let found = of(&format!("{ok}{rest}"), is_end);
            assert_eq!(found, Ok(expected.map(str::to_owned)), "{rest}");
        }
        for (response, problem) in [
            ("HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n", "HTTP status 302"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", "more than 10 bytes"),
            ("HTTP/1.1 200 OK\r\n\r\nabcdefghijk", "more than 10 bytes"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n", "more than 10 bytes"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\n", "malformed"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "malformed"),
            ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "compressed"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", "HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "ended early"),
            ("nonsense\r\n\r\n", "did not answer with HTTP"),
        ] {
            let refusal = of(response, true).unwrap_err();
            assert!(refusal.contains(problem), "{response}: {refusal}");
        }
    }

    #[test]
    fn a_document_is_read_from_a_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            // The connection stays open: the length is enough.
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            let _ = stream.read(&mut [0]);
            String::from_utf8(request).unwrap()
        });
        let headers = [("Authorization".to_owned(), "Bearer x".to_owned())];
        let request = HttpGet {
            headers: &headers,
            max_bytes: 100,
            timeout: Duration::from_secs(60),
            authorities: None,
        };
        let found = get(&HttpTarget::parse(&url).unwrap(), &request);
        assert_eq!(found, Ok(b"{}".to_vec()));
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /keys HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        assert!(request.contains("\r\nAuthorization: Bearer x\r\n"), "{request}");
    }

    proptest! {
        #[test]
        fn any_response_is_bounded(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            chunked in any::<bool>(),
            is_end in any::<bool>(),
        ) {
            let how = if chunked { "Transfer-Encoding: chunked" } else { "X: y" };
            let mut response = format!("HTTP/1.1 200 OK\r\n{how}\r\n\r\n").into_bytes();
            response.extend(&bytes);
            for response in [&response, &bytes] {
                if let Ok(Some(body)) = body_of(response, is_end, 50) {
                    prop_assert!(body.len() <= 50);
                }
            }
        }
    }
}
