//! Connects to a host outside, at an address that was checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::address_class::AddressClass;
use crate::connection_policy::{AddressRuling, Attempt, ConnectionPolicy};
use crate::host::Host;
use crate::local_route::is_local;
use crate::resolve::Resolver;
use crate::upstream_proxy::UpstreamProxy;

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a proxy may take to answer. It connects to the host meanwhile.
const PROXY_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of addresses that are tried.
const MAX_ADDRESSES: usize = 4;

/// Why an address that is not public is refused.
const NO_RULE: &str = "no rule allows";

/// Why a host was not connected to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialError {
    /// All its addresses are refused, for this reason.
    Refused(String),
    /// The same. A rule for this address would allow it.
    NeedsRule(String, SocketAddr),
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
    let proxy = resolver.proxy(&attempt.host, attempt.port);
    let addresses = match &attempt.host {
        Host::Address(address) => {
            let address = SocketAddr::new(*address, attempt.port);
            // The rule that named the address when the command connected may be for another port.
            if !AddressRuling::names_target(policy.address_ruling(address)) {
                return Err(DialError::Refused(format!("no rule names the address {target}")));
            }
            vec![address]
        }
        // The proxy resolves the name.
        Host::Name(_) if proxy.is_some() => Vec::new(),
        Host::Name(name) => {
            let resolved = resolver.resolve(name, attempt.port);
            let resolved =
                resolved.map_err(|error| failed(&target, "cannot be resolved", &error))?;
            permitted(&target, resolved, policy)?
        }
    };
    match proxy {
        Some(proxy) => dial_through(proxy, attempt, resolver),
        None => connect_to_any(addresses),
    }
    .map_err(|error| failed(&target, "cannot be reached", &error))
}

/// Connects to the first address that answers.
fn connect_to_any(addresses: Vec<SocketAddr>) -> io::Result<(TcpStream, SocketAddr)> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to a proxy, and has it connect to the host. Returns the address of the proxy.
fn dial_through(
    proxy: &UpstreamProxy,
    attempt: &Attempt,
    resolver: &dyn Resolver,
) -> io::Result<(TcpStream, SocketAddr)> {
    let in_proxy = |error: io::Error| {
        io::Error::new(error.kind(), format!("through the proxy {proxy}: {error}"))
    };
    // The user configured it, so its address may be any.
    let addresses = match proxy.host() {
        Host::Address(address) => vec![SocketAddr::new(*address, proxy.port())],
        Host::Name(name) => resolver.resolve(name, proxy.port()).map_err(in_proxy)?,
    };
    let (mut stream, address) = connect_to_any(addresses).map_err(in_proxy)?;
    stream.set_read_timeout(Some(PROXY_TIMEOUT))?;
    stream.set_write_timeout(Some(PROXY_TIMEOUT))?;
    proxy.open(&mut stream, &attempt.host, attempt.port).map_err(in_proxy)?;
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    Ok((stream, address))
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
            (Some(AddressRuling::AllowInspected), class) => {
                refused = Some((address, class, "rules allow only some requests to"));
            }
            (Some(AddressRuling::Allow), _) | (_, AddressClass::Public) => permitted.push(address),
            (_, class) => refused = Some((address, class, NO_RULE)),
        }
    }
    match (permitted.is_empty(), refused) {
        (false, _) => Ok(permitted),
        (true, None) => Err(DialError::Failed(format!("{target} has no address"))),
        (true, Some((address, class, why))) => {
            let ip = address.ip();
            let reason = format!("{target} has the {class} address {ip}, and {why} that address");
            // A rule that asks would win over one that allows.
            let needs_rule = why == NO_RULE && policy.address_ruling(address).is_none();
            Err(if needs_rule {
                DialError::NeedsRule(reason, address)
            } else {
                DialError::Refused(reason)
            })
        }
    }
}

/// The class of an address, with the routes of this machine.
fn class(address: IpAddr) -> AddressClass {
    match AddressClass::of(address) {
        AddressClass::Public if is_own(address.to_canonical()) => AddressClass::Own,
        class => class,
    }
}

/// Whether an address belongs to this machine.
fn is_own(address: IpAddr) -> bool {
    is_local(address).unwrap_or_else(|_| is_own_source(address))
}

/// Whether the kernel would send to an address from that very address. This misses local routes with another source.
fn is_own_source(address: IpAddr) -> bool {
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
                Err(DialError::Refused(why) | DialError::NeedsRule(why, _)) => Some(why),
                _ => None,
            }
        };
        // The port of another rule, as of a second connection to the stand-in of an address.
        assert!(refusal("10.9.9.9", 22, "10.9.9.9").unwrap().contains("no rule names"));
        assert!(refusal("a.example", 443, "93.184.216.34").unwrap().contains("a rule denies"));
        assert!(refusal("a.example", 22, "10.9.9.9").unwrap().contains("no rule allows"));
        let private = SocketAddr::from(([10, 9, 9, 9], 22));
        let refused = permitted("a.example:22", vec![private], &Rules).unwrap_err();
        assert!(matches!(refused, DialError::NeedsRule(_, address) if address == private));
        assert_eq!(refusal("a.example", 5432, "10.9.9.9"), None);
        assert_eq!(refusal("a.example", 443, "93.184.216.35"), None);
    }

    /// A proxy that answers one request, and returns it.
    fn proxy_once(answer: &'static [u8]) -> (u16, std::thread::JoinHandle<String>) {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            client.write_all(answer).unwrap();
            String::from_utf8(request).unwrap()
        });
        (port, served)
    }

    /// Dials a host through a proxy with this answer. Returns the first bytes of the host, and the request.
    fn dialed_through(host: &str, answer: &'static [u8]) -> (Result<Vec<u8>, DialError>, String) {
        use std::io::Read as _;
        let (port, served) = proxy_once(answer);
        let proxy = UpstreamProxy::parse(&format!("http://me:secret@127.0.0.1:{port}")).unwrap();
        let proxies = crate::UpstreamProxies::default().with_proxy(proxy);
        let resolver =
            crate::ProxiedResolver { resolver: std::sync::Arc::new(SystemResolver), proxies };
        let host = Host::parse(host).unwrap();
        let attempt = Attempt { requester: "job".into(), host, port: 5432, number: 1 };
        let bytes = dial(&attempt, &Rules, &resolver).map(|(mut stream, _)| {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        });
        (bytes, served.join().unwrap())
    }

    #[test]
    fn a_proxy_resolves_names_and_its_refusal_is_a_failure() {
        let ok = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nSSH-2.0-x";
        let (bytes, request) = dialed_through("missing.invalid", ok);
        assert_eq!(bytes.unwrap(), b"SSH-2.0-x");
        assert!(request.starts_with("CONNECT missing.invalid:5432 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{request}");
        let (refused, _) = dialed_through("a.example", b"HTTP/1.1 403 Forbidden\r\n\r\n");
        let DialError::Failed(why) = refused.unwrap_err() else { panic!() };
        assert!(
            why.contains("the proxy answered with status 403") && !why.contains("secret"),
            "{why}"
        );
    }

    #[test]
    fn a_proxy_does_not_open_private_addresses() {
        let (bytes, request) = dialed_through("10.9.9.9", b"HTTP/1.0 200 OK\r\n\r\n");
        assert!(bytes.is_ok() && request.starts_with("CONNECT 10.9.9.9:5432 "), "{request}");
        let proxies = crate::UpstreamProxies::default()
            .with_proxy(UpstreamProxy::parse("http://127.0.0.1:1").unwrap());
        let resolver =
            crate::ProxiedResolver { resolver: std::sync::Arc::new(SystemResolver), proxies };
        let host = Host::parse("10.9.9.8").unwrap();
        let attempt = Attempt { requester: "job".into(), host, port: 5432, number: 1 };
        let refused = dial(&attempt, &Rules, &resolver).unwrap_err();
        assert!(matches!(refused, DialError::Refused(_)), "{refused:?}");
    }

    #[test]
    fn own_addresses_are_recognized() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()) && is_own_source(Ipv4Addr::LOCALHOST.into()));
        assert!(is_own(Ipv4Addr::new(127, 9, 9, 9).into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
        assert_eq!(class(Ipv4Addr::LOCALHOST.into()), AddressClass::Loopback);
    }
}
