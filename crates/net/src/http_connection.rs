//! Requests of this program itself, one after the other on the same connection, to a server that the user configured, such as an
//! object store.
//!
//! Everything is bounded: the time of each request, and what is read of its response. Redirects are not followed.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::http_get::{Length, MAX_HEAD_BYTES, response_head, unchunk};
use crate::own_connection::HttpTarget;
use crate::server_stream::{ServerAddress, ServerStream};

/// The longest time without a byte in either direction.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// One request.
#[derive(Debug)]
pub struct HttpRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The path with its query, encoded.
    pub path: &'a str,
    /// Headers beside `Host` and `Content-Length`.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
    /// The largest body of a response.
    pub max_bytes: usize,
    /// The time for all of it.
    pub timeout: Duration,
}

/// The response to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection that is opened when it is needed.
#[derive(Debug)]
pub struct HttpConnection {
    target: HttpTarget,
    authorities: Option<PathBuf>,
    stream: Option<ServerStream>,
}

impl HttpConnection {
    /// A connection to a server. `authorities` is a file with certificates that are trusted instead of those of the system.
    pub fn new(target: HttpTarget, authorities: Option<PathBuf>) -> HttpConnection {
        HttpConnection { target, authorities, stream: None }
    }

    /// Makes a request. It is made again if an earlier connection turns out to be closed, so the server may see it twice.
    ///
    /// # Errors
    ///
    /// Fails without a complete response.
    pub fn request(&mut self, request: &HttpRequest<'_>) -> Result<HttpAnswer, String> {
        let until = Instant::now() + request.timeout;
        let head = head(&self.target, request)?;
        if let Some(stream) = self.stream.take() {
            match self.exchange(stream, &head, request, until) {
                Err(Failure::Closed) => {}
                Err(Failure::Other(problem)) => return Err(problem),
                Ok(answer) => return Ok(answer),
            }
        }
        let stream = self.connect(until)?;
        self.exchange(stream, &head, request, until).map_err(|failure| match failure {
            Failure::Closed => "the server closed the connection".to_owned(),
            Failure::Other(problem) => problem,
        })
    }

    fn connect(&self, until: Instant) -> Result<ServerStream, String> {
        let (host, port) = self.target.host_and_port();
        let stream = ServerStream::connect(&ServerAddress::Host(host.to_owned(), port), until)?;
        if !self.target.is_tls() {
            return Ok(stream);
        }
        stream.set_deadline(until).map_err(|error| error.to_string())?;
        stream.start_tls(host, self.authorities.as_deref())
    }

    fn exchange(
        &mut self,
        mut stream: ServerStream,
        head: &str,
        request: &HttpRequest<'_>,
        until: Instant,
    ) -> Result<HttpAnswer, Failure> {
        stream.set_deadline(next(until)).map_err(Failure::of)?;
        let mut sent = stream.write_all(head.as_bytes());
        // In parts, so that the time limit applies to all of them together.
        for part in request.body.chunks(256 << 10) {
            sent = sent.and_then(|()| stream.set_deadline(next(until)));
            sent = sent.and_then(|()| stream.write_all(part));
        }
        // A server may refuse a request before it has read all of it.
        let sent = sent.and_then(|()| stream.flush());
        let received = receive(&mut stream, request.max_bytes, until);
        match (sent, received) {
            (_, Ok((answer, true))) => {
                self.stream = Some(stream);
                Ok(answer)
            }
            (_, Ok((answer, false))) => Ok(answer),
            (Err(error), Err(Failure::Closed)) if error.kind() == std::io::ErrorKind::TimedOut => {
                Err(Failure::of(error))
            }
            (_, Err(failure)) => Err(failure),
        }
    }
}

/// Why there is no response.
enum Failure {
    /// The connection was closed before the response began.
    Closed,
    Other(String),
}

impl Failure {
    fn of(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                Failure::Other("the server did not answer in time".to_owned())
            }
            _ => Failure::Other(error.to_string()),
        }
    }
}

fn head(target: &HttpTarget, request: &HttpRequest<'_>) -> Result<String, String> {
    let length = request.body.len().to_string();
    let own = [("Content-Length", length.as_str())];
    let given = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\n",
        request.method,
        request.path,
        target.host_header()
    );
    for (name, value) in own.into_iter().chain(given) {
        if name.chars().chain(value.chars()).any(char::is_control) {
            return Err("a header has a control character".to_owned());
        }
        head += &format!("{name}: {value}\r\n");
    }
    if request.path.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
        return Err("the path of a request is not encoded".to_owned());
    }
    Ok(head + "\r\n")
}

/// Until when the next byte must come.
fn next(until: Instant) -> Instant {
    until.min(Instant::now() + MAX_SILENCE)
}

/// Reads a response. Also returns whether the connection can be used again.
fn receive(
    stream: &mut ServerStream,
    max: usize,
    until: Instant,
) -> Result<(HttpAnswer, bool), Failure> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    let mut more = |bytes: &mut Vec<u8>| -> Result<bool, Failure> {
        let read = stream.set_deadline(next(until)).and_then(|()| stream.read(&mut chunk));
        let read = match read {
            Ok(read) => read,
            Err(error)
                if bytes.is_empty()
                    && !matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
            {
                return Err(Failure::Closed);
            }
            Err(error) => return Err(Failure::of(error)),
        };
        bytes.extend_from_slice(&chunk[..read]);
        Ok(read > 0)
    };
    let early = || Failure::Other("the response ended early".to_owned());
    let end = loop {
        let beginning = &bytes[..bytes.len().min(MAX_HEAD_BYTES)];
        if let Some(end) = beginning.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() >= MAX_HEAD_BYTES {
            return Err(Failure::Other("the head of the response is too large".to_owned()));
        }
        if !more(&mut bytes)? {
            return Err(if bytes.is_empty() { Failure::Closed } else { early() });
        }
    };
    let head = response_head(&bytes[..end]).map_err(Failure::Other)?;
    let mut body = bytes.split_off(end + 4);
    let too_large = || Failure::Other(format!("the response has more than {max} bytes"));
    let length =
        if head.status == 204 || head.status == 304 { Length::Bytes(0) } else { head.length };
    let keeps_open = match length {
        Length::Bytes(length) if length > max => return Err(too_large()),
        Length::Bytes(length) => {
            while body.len() < length {
                if !more(&mut body)? {
                    return Err(early());
                }
            }
            // More than the body was not asked for.
            let is_exact = body.len() == length;
            body.truncate(length);
            is_exact
        }
        Length::Chunks => loop {
            let decoded = unchunk(&body, max).map_err(|problem| {
                problem.map_or_else(too_large, |text| Failure::Other(text.to_owned()))
            })?;
            if let Some(decoded) = decoded {
                body = decoded;
                // The trailer may not have arrived.
                break false;
            }
            if !more(&mut body)? {
                return Err(early());
            }
        },
        Length::UntilClosed => {
            while body.len() <= max && more(&mut body)? {}
            if body.len() > max {
                return Err(too_large());
            }
            false
        }
    };
    Ok((HttpAnswer { status: head.status, body }, keeps_open && head.keeps_open))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers each connection with these responses, one for each request, and then closes it. Returns the requests.
    fn serve(
        connections: Vec<Vec<&'static str>>,
    ) -> (HttpConnection, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = HttpTarget::parse(&format!("http://{}", listener.local_addr().unwrap()));
        let server = std::thread::spawn(move || {
            let mut seen = Vec::new();
            for responses in connections {
                let (mut stream, _) = listener.accept().unwrap();
                for response in responses {
                    let mut request = Vec::new();
                    while !request.ends_with(b"END") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        request.push(byte[0]);
                    }
                    stream.write_all(response.as_bytes()).unwrap();
                    seen.push(String::from_utf8(request).unwrap());
                }
            }
            seen
        });
        (HttpConnection::new(target.unwrap(), None), server)
    }

    fn put(connection: &mut HttpConnection) -> Result<HttpAnswer, String> {
        let headers = [("x-a".to_owned(), "b".to_owned())];
        connection.request(&HttpRequest {
            method: "PUT",
            path: "/p?q=1",
            headers: &headers,
            body: b"END",
            max_bytes: 10,
            timeout: Duration::from_secs(60),
        })
    }

    #[test]
    fn requests_share_a_connection_and_a_closed_one_is_replaced() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let refused = "HTTP/1.1 412 Precondition Failed\r\ncontent-length: 0\r\n\r\n";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let (mut connection, server) = serve(vec![
            vec![ok, refused],
            vec![chunked],
            vec![closing],
            vec!["HTTP/1.1 204 x\r\n\r\n"],
        ]);
        let answer = |status, body: &str| Ok(HttpAnswer { status, body: body.as_bytes().to_vec() });
        assert_eq!(put(&mut connection), answer(200, "ok"));
        assert_eq!(put(&mut connection), answer(412, ""));
        assert_eq!(put(&mut connection), answer(200, "ab"));
        assert_eq!(put(&mut connection), answer(200, ""));
        assert_eq!(put(&mut connection), answer(204, ""));
        let seen = server.join().unwrap();
        assert_eq!(seen.len(), 5);
        assert!(seen[0].starts_with("PUT /p?q=1 HTTP/1.1\r\nHost: 127.0.0.1:"), "{}", seen[0]);
        assert!(seen[0].contains("\r\nContent-Length: 3\r\nx-a: b\r\n\r\nEND"), "{}", seen[0]);
    }

    #[test]
    fn incomplete_and_too_large_responses_are_errors() {
        for response in [
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n0123456789a",
            "HTTP/1.1 200 OK\r\n",
            "nonsense\r\n\r\n",
            "",
        ] {
            let (mut connection, server) = serve(vec![vec![response]]);
            assert!(put(&mut connection).is_err(), "{response}");
            server.join().unwrap();
        }
    }
}
