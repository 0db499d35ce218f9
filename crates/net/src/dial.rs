//! Connects to a host outside, at an address that was checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::address_class::AddressClass;
use crate::connection_policy::{AddressRuling, Attempt, ConnectionPolicy};
use crate::host::Host;
use crate::resolve::Resolver;

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of addresses that are tried.
const MAX_ADDRESSES: usize = 4;

/// Why a host was not connected to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialError {
    /// All its addresses are refused, for this reason.
    Refused(String),
    /// It has no address, or none answers.
    Failed(String),
}

/// Connects to the host of an attempt.
pub(crate) fn dial(
    attempt: &Attempt,
    policy: &dyn ConnectionPolicy,
    resolver: &dyn Resolver,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let target = attempt.target();
    let addresses = match &attempt.host {
        Host::Address(address) => {
            let address = SocketAddr::new(*address, attempt.port);
            // The rule that named the address when the command connected may be for another port.
            if !AddressRuling::names_target(policy.address_ruling(address)) {
                return Err(DialError::Refused(format!("no rule names the address {target}")));
            }
            vec![address]
        }
        Host::Name(name) => {
            let resolved = resolver.resolve(name, attempt.port);
            let resolved =
                resolved.map_err(|error| failed(&target, "cannot be resolved", &error))?;
            permitted(&target, resolved, policy)?
        }
    };
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => last = error,
        }
    }
    Err(failed(&target, "cannot be reached", &last))
}

/// The addresses that may be connected to.
fn permitted(
    target: &str,
    resolved: Vec<SocketAddr>,
    policy: &dyn ConnectionPolicy,
) -> Result<Vec<SocketAddr>, DialError> {
    let mut refused = None;
    let mut permitted = Vec::new();
    for address in resolved {
        match (policy.address_ruling(address), class(address.ip())) {
            (Some(AddressRuling::Deny), class) => {
                refused = Some((address, class, "a rule denies"));
            }
            (Some(AddressRuling::Allow), _) | (_, AddressClass::Public) => permitted.push(address),
            (_, class) => refused = Some((address, class, "no rule allows")),
        }
    }
    match (permitted.is_empty(), refused) {
        (false, _) => Ok(permitted),
        (true, None) => Err(DialError::Failed(format!("{target} has no address"))),
        (true, Some((address, class, why))) => Err(DialError::Refused(format!(
            "{target} has the {class} address {}, and {why} that address",
            address.ip()
        ))),
    }
}

/// The class of an address, with the interfaces of this machine.
fn class(address: IpAddr) -> AddressClass {
    match AddressClass::of(address) {
        AddressClass::Public if is_own(address.to_canonical()) => AddressClass::Own,
        class => class,
    }
}

/// Whether an address belongs to this machine: then the kernel would send from that very address.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Nothing is sent: this only asks for the route.
    const ANY_PORT: u16 = 9;
    let local = UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect((address, ANY_PORT)).map(|()| socket))
        .and_then(|socket| socket.local_addr());
    local.is_ok_and(|local| local.ip() == address)
}

fn failed(target: &str, what: &str, error: &io::Error) -> DialError {
    DialError::Failed(format!("{target} {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_policy::{ConnectionRecord, Ruling};
    use crate::resolve::SystemResolver;

    /// Allows 10.9.9.9:5432 and denies 93.184.216.34.
    #[derive(Debug)]
    struct Rules;

    impl ConnectionPolicy for Rules {
        fn decide(&self, _: &Attempt) -> Ruling {
            Ruling::Allow { rule: "all".to_owned() }
        }

        fn address_ruling(&self, address: SocketAddr) -> Option<AddressRuling> {
            match address.to_string().as_str() {
                "10.9.9.9:5432" => Some(AddressRuling::Allow),
                "93.184.216.34:443" => Some(AddressRuling::Deny),
                _ => None,
            }
        }

        fn connected(&self, _: &Attempt, _: &str, _: SocketAddr) {}

        fn refused(&self, _: &Attempt, _: &str) {}

        fn ended(&self, _: &ConnectionRecord) {}
    }

    #[test]
    fn rules_for_addresses_hold_for_every_port_and_name() {
        let refusal = |host: &str, port: u16, resolved: &str| {
            let attempt = Attempt {
                requester: "job".into(),
                host: Host::parse(host).unwrap(),
                port,
                number: 1,
            };
            let resolved = SocketAddr::new(resolved.parse().unwrap(), port);
            let outcome = match &attempt.host {
                Host::Address(_) => dial(&attempt, &Rules, &SystemResolver).map(drop),
                Host::Name(_) => permitted(host, vec![resolved], &Rules).map(drop),
            };
            match outcome {
                Err(DialError::Refused(why)) => Some(why),
                _ => None,
            }
        };
        // The port of another rule, as of a second connection to the stand-in of an address.
        assert!(refusal("10.9.9.9", 22, "10.9.9.9").unwrap().contains("no rule names"));
        assert!(refusal("a.example", 443, "93.184.216.34").unwrap().contains("a rule denies"));
        assert!(refusal("a.example", 22, "10.9.9.9").unwrap().contains("no rule allows"));
        assert_eq!(refusal("a.example", 5432, "10.9.9.9"), None);
        assert_eq!(refusal("a.example", 443, "93.184.216.35"), None);
    }

    #[test]
    fn own_addresses_are_recognized() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert_eq!(class(Ipv4Addr::LOCALHOST.into()), AddressClass::Loopback);
    }
}
