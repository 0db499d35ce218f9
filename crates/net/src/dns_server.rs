//! Answers the DNS queries of a namespace.

use std::net::{Ipv4Addr, UdpSocket};

use crate::dns::{Answer, Query, TYPE_A};
use crate::host::{Host, normalized_name};
use crate::synthetic_addresses::SyntheticAddresses;

/// Longer queries are not answered.
const MAX_QUERY: usize = 1500;

/// Answers one query that waits on the socket.
pub(crate) fn answer_one(socket: &UdpSocket, answer: impl FnOnce(&Query<'_>) -> Answer) {
    let mut message = [0; MAX_QUERY];
    let Ok((length, client)) = socket.recv_from(&mut message) else { return };
    if let Some(query) = message.get(..length).and_then(Query::read) {
        let reply = query.reply(answer(&query));
        // The client may be gone.
        let _ = socket.send_to(&reply, client);
    }
}

/// The answer to a query: every host name has an address, whether it exists outside or not.
pub(crate) fn answer(query: &Query<'_>, addresses: &mut SyntheticAddresses) -> Answer {
    let Some(name) = normalized_name(&query.name) else { return Answer::NoSuchName };
    if name == "localhost" || name.ends_with(".localhost") {
        return match query.record_type {
            TYPE_A => Answer::Address(Ipv4Addr::LOCALHOST),
            _ => Answer::NoRecord,
        };
    }
    let last_label = name.rsplit('.').next().unwrap_or_default();
    // Names without a dot are local. No top-level domain is a number: the resolver outside would take such a
    // name for an address.
    if !name.contains('.') || is_number(last_label) {
        return Answer::NoSuchName;
    }
    if query.record_type != TYPE_A || !query.is_internet {
        return Answer::NoRecord;
    }
    Answer::Address(addresses.address_of(&Host::Name(name)))
}

/// Whether a label is a number of an address, in lower case.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, record_type: u16) -> Answer {
        let mut message = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(record_type.to_be_bytes());
        message.extend([0, 1]);
        answer(&Query::read(&message).unwrap(), &mut SyntheticAddresses::default())
    }

    #[test]
    fn only_host_names_have_addresses() {
        let first = Answer::Address(Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(asked("a.example", TYPE_A), first);
        assert_eq!(asked("A.Example", TYPE_A), first);
        assert_eq!(asked("a.example", 28), Answer::NoRecord);
        assert_eq!(asked("a.example", 16), Answer::NoRecord);
        assert_eq!(asked("x.localhost", TYPE_A), Answer::Address(Ipv4Addr::LOCALHOST));
        for name in
            ["host", "10.0.0.5", "127.1", "a b.example", "a.1", "1.1.1.0x1", "1.0XfF", "1.0x"]
        {
            assert_eq!(asked(name, TYPE_A), Answer::NoSuchName, "{name}");
        }
    }
}
