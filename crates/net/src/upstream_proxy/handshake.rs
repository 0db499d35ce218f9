//! The handshakes with a proxy. Each reads exactly the bytes of the proxy's reply: those of the host follow.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};

use crate::host::Host;

/// The longest reply of a proxy to CONNECT.
const MAX_REPLY: usize = 16 << 10;

type Credentials = (String, String);

/// Asks for a connection with the method CONNECT of HTTP.
pub(super) fn http_connect(
    stream: &mut TcpStream,
    host: &Host,
    port: u16,
    credentials: Option<&Credentials>,
) -> io::Result<()> {
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some((user, password)) = credentials {
        let encoded = base64(format!("{user}:{password}").as_bytes());
        request += &format!("Proxy-Authorization: Basic {encoded}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
        if head.len() > MAX_REPLY {
            return Err(io::Error::other("the reply of the proxy is too long"));
        }
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let status = words.next().filter(|version| version.starts_with("HTTP/1.")).and(words.next());
    match status.and_then(|status| status.parse::<u16>().ok()) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(io::Error::other("the proxy wants a user name and a password")),
        Some(status) => Err(io::Error::other(format!("the proxy answered with status {status}"))),
        None => Err(io::Error::other("the reply of the proxy is not HTTP")),
    }
}

/// Asks for a connection with SOCKS version 5.
pub(super) fn socks5_connect(
    stream: &mut TcpStream,
    host: &Host,
    port: u16,
    credentials: Option<&Credentials>,
) -> io::Result<()> {
    const NO_AUTHENTICATION: u8 = 0;
    const PASSWORD: u8 = 2;
    let methods: &[u8] = if credentials.is_some() {
        &[5, 2, NO_AUTHENTICATION, PASSWORD]
    } else {
        &[5, 1, NO_AUTHENTICATION]
    };
    stream.write_all(methods)?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen)?;
    match (chosen, credentials) {
        ([5, NO_AUTHENTICATION], _) => {}
        ([5, PASSWORD], Some((user, password))) => {
            let mut request = vec![1];
            for text in [user, password] {
                request.push(length(text)?);
                request.extend(text.as_bytes());
            }
            stream.write_all(&request)?;
            let mut reply = [0; 2];
            stream.read_exact(&mut reply)?;
            if reply[1] != 0 {
                return Err(io::Error::other("the proxy refused the user name or the password"));
            }
        }
        ([5, _], _) => {
            return Err(io::Error::other("the proxy wants a user name and a password"));
        }
        _ => return Err(io::Error::other("the reply of the proxy is not SOCKS 5")),
    }
    let mut request = vec![5, 1, 0];
    match host {
        Host::Name(name) => {
            request.extend([3, length(name)?]);
            request.extend(name.as_bytes());
        }
        Host::Address(IpAddr::V4(address)) => {
            request.push(1);
            request.extend(address.octets());
        }
        Host::Address(IpAddr::V6(address)) => {
            request.push(4);
            request.extend(address.octets());
        }
    }
    request.extend(port.to_be_bytes());
    stream.write_all(&request)?;
    read_socks5_reply(stream)
}

fn read_socks5_reply(stream: &mut TcpStream) -> io::Result<()> {
    let mut reply = [0; 4];
    stream.read_exact(&mut reply)?;
    if reply[0] != 5 || reply[1] != 0 {
        let why = format!("the proxy answered with SOCKS error {}", reply[1]);
        return Err(io::Error::other(why));
    }
    // The address that the proxy uses, and its port.
    let length = match reply[3] {
        1 => 4,
        4 => 16,
        3 => {
            let mut length = [0];
            stream.read_exact(&mut length)?;
            usize::from(length[0])
        }
        _ => return Err(io::Error::other("the reply of the proxy is not SOCKS 5")),
    };
    let mut rest = vec![0; length + 2];
    stream.read_exact(&mut rest)
}

fn length(text: &str) -> io::Result<u8> {
    u8::try_from(text.len()).map_err(|_| io::Error::other("too long for SOCKS"))
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("me:p@ss", "bWU6cEBzcw==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
