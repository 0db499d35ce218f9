//! Reads DNS queries and writes replies.
//!
//! Only queries with a single question are accepted. Nothing is ever forwarded, so a query carries no data
//! out.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The record type of IPv4 addresses.
pub const TYPE_A: u16 = 1;

/// The class of the internet.
const CLASS_IN: u16 = 1;

/// The length of a header.
const HEADER: usize = 12;

/// The longest name on the wire, with the lengths of its labels and the final zero.
const MAX_NAME: usize = 255;

/// The longest label.
const MAX_LABEL: usize = 63;

/// How long a client may keep an address, in seconds. Addresses mean the same for the whole session.
const SECONDS_TO_LIVE: u32 = 30;

/// A query with one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<'a> {
    /// The name in lower case, without a final dot. Bytes that host names do not have are escaped as `\NNN`.
    pub name: String,
    /// The record type.
    pub record_type: u16,
    /// Whether the class is that of the internet.
    pub is_internet: bool,
    id: [u8; 2],
    recursion_desired: bool,
    /// The question as received.
    question: &'a [u8],
}

/// The reply to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The address of the name.
    Address(Ipv4Addr),
    /// The name exists and has no record of this type.
    NoRecord,
    /// The name does not exist.
    NoSuchName,
}

impl<'a> Query<'a> {
    /// Reads a query. `None` if it is malformed, a reply, or another kind of request.
    pub fn read(message: &'a [u8]) -> Option<Query<'a>> {
        let header = message.get(..HEADER)?;
        let is_plain_query = header[2] & 0b1111_1000 == 0;
        let has_one_question = header[4..6] == [0, 1] && header[6..8] == [0, 0];
        if !is_plain_query || !has_one_question {
            return None;
        }
        let (name, length) = read_name(&message[HEADER..])?;
        let end = HEADER + length + 4;
        let numbers = message.get(end - 4..end)?;
        Some(Query {
            name,
            record_type: u16::from_be_bytes([numbers[0], numbers[1]]),
            is_internet: u16::from_be_bytes([numbers[2], numbers[3]]) == CLASS_IN,
            id: [header[0], header[1]],
            recursion_desired: header[2] & 1 == 1,
            question: &message[HEADER..end],
        })
    }

    /// The reply as bytes. It is never longer than the smallest message that every client accepts.
    pub fn reply(&self, answer: Answer) -> Vec<u8> {
        let (code, records) = match answer {
            Answer::Address(_) => (0, 1),
            Answer::NoRecord => (0, 0),
            Answer::NoSuchName => (3, 0),
        };
        let mut reply = self.id.to_vec();
        // A reply, by a server that recurses.
        reply.extend([0x80 | u8::from(self.recursion_desired), 0x80 | code]);
        reply.extend([0, 1, 0, records, 0, 0, 0, 0]);
        reply.extend(self.question);
        if let Answer::Address(address) = answer {
            // The name is the one at the beginning of the question.
            reply.extend([0xc0, 12]);
            reply.extend(TYPE_A.to_be_bytes());
            reply.extend(CLASS_IN.to_be_bytes());
            reply.extend(SECONDS_TO_LIVE.to_be_bytes());
            reply.extend([0, 4]);
            reply.extend(address.octets());
        }
        reply
    }
}

/// Reads a name without pointers. Returns it as text, and its length on the wire.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        if length > MAX_LABEL || at + length >= MAX_NAME {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        for &byte in bytes.get(at..at + length)? {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
                b'A'..=b'Z' => name.push(byte.to_ascii_lowercase().into()),
                other => {
                    let _ = write!(name, "\\{other:03}");
                }
            }
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(name: &str, record_type: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(record_type.to_be_bytes());
        message.extend([0, 1]);
        message
    }

    #[test]
    fn a_query_is_read_and_answered() {
        let mut message = query("A.Example", TYPE_A);
        // An additional record, which clients send for larger replies.
        message[11] = 1;
        message.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        let query = Query::read(&message).unwrap();
        assert_eq!((query.name.as_str(), query.record_type), ("a.example", TYPE_A));
        let reply = query.reply(Answer::Address(Ipv4Addr::new(198, 18, 0, 1)));
        assert_eq!(reply[..4], [0xab, 0xcd, 0x81, 0x80]);
        assert_eq!(reply[4..12], [0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(reply[reply.len() - 6..], [0, 4, 198, 18, 0, 1]);
        assert_eq!(query.reply(Answer::NoSuchName)[3] & 15, 3);
        assert_eq!(query.reply(Answer::NoRecord)[3] & 15, 0);
    }

    #[test]
    fn malformed_queries_are_not_read() {
        let good = query("a.example", TYPE_A);
        for length in 0..good.len() {
            assert_eq!(Query::read(&good[..length]), None, "{length}");
        }
        let changed = |at: usize, byte: u8| {
            let mut message = good.clone();
            message[at] = byte;
            message
        };
        // A reply, another operation, no question, two questions, an answer, a pointer as a name.
        for (at, byte) in [(2, 0x80), (2, 0x28), (5, 0), (5, 2), (7, 1), (12, 0xc0)] {
            assert_eq!(Query::read(&changed(at, byte)), None, "{at}");
        }
        let longest = vec!["a".repeat(63); 3].join(".") + "." + &"b".repeat(61);
        assert!(Query::read(&query(&longest, TYPE_A)).is_some());
        assert_eq!(Query::read(&query(&format!("{longest}b"), TYPE_A)), None);
    }

    #[test]
    fn odd_bytes_in_names_are_escaped() {
        let mut message = query("axb", TYPE_A);
        message[14] = b'.';
        assert_eq!(Query::read(&message).unwrap().name, "a\\046b");
        assert_eq!(Query::read(&query("", TYPE_A)).unwrap().name, "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(query) = Query::read(&bytes) {
                prop_assert!(query.reply(Answer::Address(Ipv4Addr::LOCALHOST)).len() <= 512);
                prop_assert!(query.name.is_ascii());
            }
        }

        #[test]
        fn names_are_read_in_lower_case(name in "[a-zA-Z0-9_-]{1,20}(\\.[a-zA-Z0-9-]{1,20}){0,5}") {
            let message = query(&name, 28);
            prop_assert_eq!(Query::read(&message).unwrap().name, name.to_ascii_lowercase());
        }
    }
}
