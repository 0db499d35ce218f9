//! Finds the server name in the first message of a TLS client.

use crate::host::normalized_name;

/// The type of a record with handshake messages, and the major version of all TLS versions.
const HANDSHAKE: u8 = 22;
const MAJOR_VERSION: u8 = 3;

/// The type of the handshake message of a client.
const CLIENT_HELLO: u8 = 1;

/// The extension with the server name, and the type of a host name in it.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// The largest record.
const MAX_RECORD: usize = (16 << 10) + 256;

/// The largest message that is accepted. Ordinary ones have less than 2 KiB.
pub const MAX_HELLO_BYTES: usize = 32 << 10;

/// The beginning of a connection, read as TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientHello {
    /// More bytes are needed.
    Incomplete,
    /// It is not TLS.
    Other,
    /// It is TLS, and its message is invalid or too long.
    Malformed,
    /// The message is complete. The server name is in lower case.
    Complete {
        /// The server name, if there is one.
        server_name: Option<String>,
    },
}

impl ClientHello {
    /// Reads the bytes that a client sent first.
    pub fn read(bytes: &[u8]) -> ClientHello {
        match bytes {
            [] | [HANDSHAKE] => return ClientHello::Incomplete,
            [HANDSHAKE, MAJOR_VERSION, ..] => {}
            // A record of TLS that no client begins with. Some servers skip it.
            [20..=24, MAJOR_VERSION, ..] => return ClientHello::Malformed,
            _ => return ClientHello::Other,
        }
        let message = match handshake_message(bytes) {
            Ok(message) => message,
            Err(why) => return why,
        };
        match server_name(&message) {
            Some(server_name) => ClientHello::Complete { server_name },
            None => ClientHello::Malformed,
        }
    }
}

/// The body of the first handshake message, put together from its records.
fn handshake_message(mut records: &[u8]) -> Result<Vec<u8>, ClientHello> {
    let mut message = Vec::new();
    loop {
        let Some((header, rest)) = records.split_at_checked(5) else {
            return Err(ClientHello::Incomplete);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[..2] != [HANDSHAKE, MAJOR_VERSION] || length == 0 || length > MAX_RECORD {
            return Err(ClientHello::Malformed);
        }
        let available = rest.get(..length.min(rest.len())).unwrap_or_default();
        message.extend_from_slice(available);
        if let [kind, high, middle, low, body @ ..] = message.as_slice() {
            let wanted = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            if *kind != CLIENT_HELLO || wanted > MAX_HELLO_BYTES {
                return Err(ClientHello::Malformed);
            }
            if let Some(body) = body.get(..wanted) {
                return Ok(body.to_vec());
            }
        }
        match rest.get(length..) {
            Some(others) => records = others,
            None => return Err(ClientHello::Incomplete),
        }
    }
}

/// The server name of a message. `None` if the message is invalid.
fn server_name(body: &[u8]) -> Option<Option<String>> {
    let mut rest = Reader(body);
    // The version and the random number.
    rest.take(34)?;
    let session_id = rest.vector(1)?;
    let cipher_suites = rest.vector(2)?;
    let compression_methods = rest.vector(1)?;
    if session_id.0.len() > 32 || cipher_suites.0.is_empty() || compression_methods.0.is_empty() {
        return None;
    }
    if rest.0.is_empty() {
        return Some(None);
    }
    let mut extensions = rest.vector(2)?;
    if !rest.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let content = extensions.vector(2)?;
        if kind == usize::from(SERVER_NAME) {
            // A second one could be the one that the server uses.
            if found.is_some() {
                return None;
            }
            found = Some(host_name(content)?);
        }
    }
    Some(found)
}

/// The only host name of the extension.
fn host_name(mut extension: Reader<'_>) -> Option<String> {
    let mut names = extension.vector(2)?;
    let kind = names.number(1)?;
    let name = names.vector(2)?;
    if kind != usize::from(HOST_NAME) || !names.0.is_empty() || !extension.0.is_empty() {
        return None;
    }
    normalized_name(std::str::from_utf8(name.0).ok()?)
}

/// The unread part of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Bytes after their length, which has this many bytes.
    fn vector(&mut self, bytes: usize) -> Option<Reader<'a>> {
        let length = self.number(bytes)?;
        self.take(length).map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector(length_bytes: usize, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u64).to_be_bytes();
        [&length[8 - length_bytes..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [kind.to_be_bytes().to_vec(), vector(2, content)].concat()
    }

    fn name_extension(name: &str) -> Vec<u8> {
        let entry = [vec![HOST_NAME], vector(2, name.as_bytes())].concat();
        extension(SERVER_NAME, &vector(2, &entry))
    }

    fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend(vector(1, &[9; 32]));
        body.extend(vector(2, &[0x13, 0x01]));
        body.extend(vector(1, &[0]));
        body.extend(vector(2, &extensions.concat()));
        [vec![CLIENT_HELLO], vector(3, &body)].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| [vec![HANDSHAKE, 3, 1], vector(2, part)].concat();
        message.chunks(size).flat_map(record).collect()
    }

    fn complete(name: Option<&str>) -> ClientHello {
        ClientHello::Complete { server_name: name.map(str::to_owned) }
    }

    #[test]
    fn the_server_name_is_found() {
        let others = extension(0xff01, &[0]);
        let hello = message(&[others.clone(), name_extension("Example.COM"), others]);
        for size in [1, 5, 100, 10_000] {
            let bytes = records(&hello, size);
            assert_eq!(ClientHello::read(&bytes), complete(Some("example.com")), "{size}");
            let more = [bytes.as_slice(), b"more"].concat();
            assert_eq!(ClientHello::read(&more), complete(Some("example.com")));
            for length in 0..bytes.len() {
                assert_eq!(ClientHello::read(&bytes[..length]), ClientHello::Incomplete);
            }
        }
        assert_eq!(ClientHello::read(&records(&message(&[]), 100)), complete(None));
    }

    #[test]
    fn other_protocols_and_invalid_messages_are_told_apart() {
        for other in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x\r\n", b"\x16\x02", b"\0"] {
            assert_eq!(ClientHello::read(other), ClientHello::Other);
        }
        let two = message(&[name_extension("a.example"), name_extension("b.example")]);
        let trailing = {
            let mut hello = message(&[name_extension("a.example")]);
            hello.push(1);
            hello[3] += 1;
            hello
        };
        let huge = vec![CLIENT_HELLO, 0xff, 0xff, 0xff];
        let other_message = vec![2, 0, 0, 1, 0];
        let odd = message(&[name_extension("a\0b")]);
        for bad in [two, trailing, huge, other_message, odd] {
            assert_eq!(ClientHello::read(&records(&bad, 1000)), ClientHello::Malformed);
        }
        assert_eq!(ClientHello::read(&[22, 3, 1, 0, 0]), ClientHello::Malformed);
        assert_eq!(ClientHello::read(&[22, 3, 1, 0xff, 0xff]), ClientHello::Malformed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            ClientHello::read(&bytes);
            ClientHello::read(&[&[HANDSHAKE, MAJOR_VERSION, 1], bytes.as_slice()].concat());
        }

        /// A complete message stays the same, whatever follows.
        #[test]
        fn changed_messages_are_read_without_a_panic(at in 0_usize..200, byte: u8) {
            let mut bytes = records(&message(&[name_extension("a.example")]), 40);
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
            let before = ClientHello::read(&bytes);
            if matches!(before, ClientHello::Complete { .. }) {
                bytes.extend([1, 2, 3]);
                prop_assert_eq!(ClientHello::read(&bytes), before);
            }
        }
    }
}
