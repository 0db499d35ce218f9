//! Tells a client that its connection is refused, in a way that programs print.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use crate::client_hello::ClientHello;
use crate::http_request::HttpRequest;

/// How long a client may take to send its first bytes. A client that waits for the server gets a reset.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long a client may take to read the reply and to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// More than the first message of any client has.
const MAX_FIRST_BYTES: usize = 64 << 10;

/// The port of SSH, whose clients may wait for the server.
const SSH_PORT: u16 = 22;

/// The longest sentence in a reply.
const MAX_SENTENCE: usize = 500;

/// Why a connection is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is not allowed.
    Denied,
    /// The host cannot be reached.
    Unreachable,
}

/// The protocol of a client, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tls,
    Http,
    Ssh,
    Other,
}

/// Refuses a connection and closes it. `first_bytes` are those that were read already.
pub(crate) fn refuse(
    mut client: TcpStream,
    mut first_bytes: Vec<u8>,
    port: u16,
    cause: Cause,
    sentence: &str,
) {
    let protocol = read_protocol(&mut client, &mut first_bytes, port);
    let sentence: String = sentence.chars().take(MAX_SENTENCE).collect();
    let reply = match protocol {
        Protocol::Tls => tls_alert(cause),
        Protocol::Http => http_response(cause, &sentence),
        Protocol::Ssh => ssh_disconnect(&sentence),
        Protocol::Other => {
            reset(client);
            return;
        }
    };
    // A client that is gone needs no reply.
    if client.write_all(&reply).and_then(|()| client.shutdown(Shutdown::Write)).is_err() {
        return;
    }
    // Unread bytes would turn the end of the connection into a reset, which discards the reply.
    let until = Instant::now() + CLOSE_TIMEOUT;
    let mut rest = [0; 4096];
    while let Some(left) = time_left(until) {
        let read = client.set_read_timeout(Some(left)).and_then(|()| client.read(&mut rest));
        if !matches!(read, Ok(count) if count > 0) {
            return;
        }
    }
}

/// Closes a connection with a reset.
pub(crate) fn reset(client: TcpStream) {
    let _ = set_socket_linger(&client, Some(Duration::ZERO));
    drop(client);
}

fn time_left(until: Instant) -> Option<Duration> {
    Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// Reads until the protocol is known and the first message of the client is complete.
fn read_protocol(client: &mut TcpStream, bytes: &mut Vec<u8>, port: u16) -> Protocol {
    let until = Instant::now() + FIRST_BYTES_TIMEOUT;
    loop {
        let (protocol, is_complete) = protocol(bytes);
        if is_complete || bytes.len() > MAX_FIRST_BYTES {
            return protocol;
        }
        let mut chunk = [0; 4096];
        let read = time_left(until).and_then(|left| {
            client.set_read_timeout(Some(left)).ok()?;
            client.read(&mut chunk).ok()
        });
        match read.filter(|count| *count > 0).and_then(|count| chunk.get(..count)) {
            Some(read) => bytes.extend_from_slice(read),
            None if bytes.is_empty() && port == SSH_PORT => return Protocol::Ssh,
            None => return protocol,
        }
    }
}

/// The protocol of the bytes so far, and whether the first message is complete.
fn protocol(bytes: &[u8]) -> (Protocol, bool) {
    if bytes.is_empty() {
        return (Protocol::Other, false);
    }
    match ClientHello::read(bytes) {
        ClientHello::Incomplete => return (Protocol::Tls, false),
        ClientHello::Complete { .. } | ClientHello::Malformed => return (Protocol::Tls, true),
        ClientHello::Other => {}
    }
    const SSH: &[u8] = b"SSH-";
    if bytes.starts_with(SSH) || SSH.starts_with(bytes) {
        return (Protocol::Ssh, bytes.contains(&b'\n'));
    }
    match HttpRequest::read(bytes) {
        HttpRequest::Incomplete => (Protocol::Http, false),
        HttpRequest::Complete { .. } | HttpRequest::Malformed => (Protocol::Http, true),
        HttpRequest::Other => (Protocol::Other, true),
    }
}

/// A fatal alert: `access_denied`, or `internal_error`.
fn tls_alert(cause: Cause) -> Vec<u8> {
    let description = match cause {
        Cause::Denied => 49,
        Cause::Unreachable => 80,
    };
    vec![21, 3, 3, 0, 2, 2, description]
}

fn http_response(cause: Cause, sentence: &str) -> Vec<u8> {
    let status = match cause {
        Cause::Denied => "403 Forbidden",
        Cause::Unreachable => "502 Bad Gateway",
    };
    let body = format!("{sentence}\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The version line of a server, and a message that ends the connection with a reason.
fn ssh_disconnect(sentence: &str) -> Vec<u8> {
    const DISCONNECT: u8 = 1;
    const BY_APPLICATION: u32 = 11;
    const BLOCK: usize = 8;
    const LEAST_PADDING: usize = 4;
    let string = |text: &str| {
        let length = u32::try_from(text.len()).unwrap_or(0).to_be_bytes();
        [&length[..], text.as_bytes()].concat()
    };
    let mut payload = vec![DISCONNECT];
    payload.extend(BY_APPLICATION.to_be_bytes());
    payload.extend(string(sentence));
    payload.extend(string("en"));
    // The lengths and the payload fill whole blocks with the padding.
    let padding = LEAST_PADDING + (BLOCK - (5 + payload.len() + LEAST_PADDING) % BLOCK) % BLOCK;
    let length = u32::try_from(1 + payload.len() + padding).unwrap_or(0);
    let mut message = b"SSH-2.0-toolcrib\r\n".to_vec();
    message.extend(length.to_be_bytes());
    message.push(u8::try_from(padding).unwrap_or(0));
    message.extend(payload);
    message.resize(message.len() + padding, 0);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognized() {
        for (bytes, expected) in [
            (&b"\x16\x03\x01"[..], (Protocol::Tls, false)),
            (b"SSH-2.0-OpenSSH_9\r\n", (Protocol::Ssh, true)),
            (b"SS", (Protocol::Ssh, false)),
            (b"GET / HTTP/1.1\r\n\r\n", (Protocol::Http, true)),
            (b"GET /", (Protocol::Http, false)),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", (Protocol::Other, true)),
            (b"", (Protocol::Other, false)),
        ] {
            assert_eq!(protocol(bytes), expected);
        }
    }

    #[test]
    fn messages_of_ssh_fill_whole_blocks() {
        for length in 0..40 {
            let message = ssh_disconnect(&"x".repeat(length));
            let packet = message.strip_prefix(b"SSH-2.0-toolcrib\r\n").unwrap();
            assert_eq!(packet.len() % 8, 0);
            let stated = u32::from_be_bytes(packet[..4].try_into().unwrap());
            assert_eq!(stated as usize, packet.len() - 4);
            assert!(packet[4] >= 4);
        }
    }
}
