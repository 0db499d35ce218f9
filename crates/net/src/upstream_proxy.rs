//! The proxy of a company: parses the usual variables, and opens connections through the proxy.

mod handshake;
mod no_proxy;

use std::fmt;
use std::io;
use std::net::TcpStream;

use self::no_proxy::NoProxy;
use crate::address_class::AddressClass;
use crate::host::Host;

/// The port of HTTP, for whose requests programs use a variable of its own.
const HTTP_PORT: u16 = 80;

/// The longest URL of a proxy.
const MAX_URL: usize = 2_000;

/// A proxy that connections to other machines go through.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    protocol: ProxyProtocol,
    host: Host,
    port: u16,
    /// User name and password.
    credentials: Option<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyProtocol {
    /// HTTP with the method CONNECT.
    Http,
    /// SOCKS version 5. The proxy resolves names.
    Socks5,
}

impl UpstreamProxy {
    /// Parses `http://USER:PASSWORD@HOST:PORT`, `socks5h://…` or `HOST:PORT`. The error does not repeat the
    /// password.
    pub fn parse(url: &str) -> Result<UpstreamProxy, String> {
        let (scheme, rest) = url.trim().split_once("://").unwrap_or(("http", url.trim()));
        let (protocol, usual_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (ProxyProtocol::Http, HTTP_PORT),
            "socks5" | "socks5h" => (ProxyProtocol::Socks5, 1080),
            _ => return Err("the URL of a proxy begins with http:// or socks5h://".to_owned()),
        };
        let invalid = || "the URL of a proxy is http://HOST:PORT or http://USER:PASSWORD@HOST:PORT";
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (credentials, place) = match authority.rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| invalid())?)
            }
            _ => (place, usual_port),
        };
        let host = Host::parse(host).filter(|_| url.len() <= MAX_URL).ok_or_else(invalid)?;
        let decoded = |text: &str| percent_decoded(text).ok_or_else(invalid);
        let credentials = match credentials {
            Some(both) => {
                let (user, password) = both.split_once(':').unwrap_or((both, ""));
                Some((decoded(user)?, decoded(password)?))
            }
            None => None,
        };
        Ok(UpstreamProxy { protocol, host, port, credentials })
    }

    /// The host of the proxy.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The port of the proxy.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Asks the proxy, which `stream` is connected to, for a connection to a host.
    pub(crate) fn open(&self, stream: &mut TcpStream, host: &Host, port: u16) -> io::Result<()> {
        let credentials = self.credentials.as_ref();
        match self.protocol {
            ProxyProtocol::Http => handshake::http_connect(stream, host, port, credentials),
            ProxyProtocol::Socks5 => handshake::socks5_connect(stream, host, port, credentials),
        }
    }
}

/// Without the credentials.
impl fmt::Display for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            ProxyProtocol::Http => "http",
            ProxyProtocol::Socks5 => "socks5h",
        };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The proxies of a machine, and the hosts that are reached without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamProxies {
    /// For connections to port 80.
    http: Option<UpstreamProxy>,
    /// For connections to other ports.
    others: Option<UpstreamProxy>,
    no_proxy: NoProxy,
}

impl UpstreamProxies {
    /// The proxies that the variables `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name. Lower case is
    /// preferred. The error names the variable.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<UpstreamProxies, String> {
        let read = |name: &str| {
            let found = [name.to_ascii_lowercase(), name.to_owned()].into_iter();
            found
                .filter_map(|name| Some((variable(&name)?, name)))
                .find(|(value, _)| !value.is_empty())
        };
        let proxy = |name: &str| match read(name) {
            Some((url, name)) => match UpstreamProxy::parse(&url) {
                Ok(proxy) => Ok(Some(proxy)),
                Err(problem) => Err(format!("{name}: {problem}")),
            },
            None => Ok(None),
        };
        let all = proxy("ALL_PROXY")?;
        Ok(UpstreamProxies {
            http: proxy("HTTP_PROXY")?.or_else(|| all.clone()),
            others: proxy("HTTPS_PROXY")?.or(all),
            no_proxy: NoProxy::parse(&read("NO_PROXY").map(|(value, _)| value).unwrap_or_default()),
        })
    }

    /// One proxy for all connections.
    #[must_use]
    pub fn with_proxy(self, proxy: UpstreamProxy) -> UpstreamProxies {
        UpstreamProxies { http: Some(proxy.clone()), others: Some(proxy), ..self }
    }

    /// Whether there is no proxy.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.others.is_none()
    }

    /// The proxy for connections to a host. `None` if it is reached directly.
    pub(crate) fn of(&self, host: &Host, port: u16) -> Option<&UpstreamProxy> {
        let proxy = if port == HTTP_PORT { &self.http } else { &self.others };
        proxy.as_ref().filter(|_| !is_this_machine(host) && !self.no_proxy.contains(host, port))
    }
}

/// Without credentials.
impl fmt::Display for UpstreamProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.http, &self.others) {
            (None, None) => f.write_str("none"),
            (Some(http), Some(others)) if http == others => write!(f, "{http}"),
            (http, others) => {
                let shown = |proxy: &Option<UpstreamProxy>| {
                    proxy.as_ref().map_or("none".to_owned(), ToString::to_string)
                };
                write!(f, "{} for port 80, {} for other ports", shown(http), shown(others))
            }
        }
    }
}

/// Whether a host is this machine by definition. A proxy would connect to itself.
fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Address(address) => AddressClass::of(*address) == AddressClass::Loopback,
    }
}

/// Replaces `%41` by `A`. `None` if the text is invalid.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    // A line break would end the header.
    String::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_proxies_are_parsed() {
        let proxy = UpstreamProxy::parse("http://me:p%40ss@Proxy.Example:3128/").unwrap();
        assert_eq!(proxy.credentials, Some(("me".to_owned(), "p@ss".to_owned())));
        assert_eq!(
            format!("{proxy} {proxy:?}"),
            "http://proxy.example:3128 http://proxy.example:3128"
        );
        for (url, shown) in [
            ("proxy.example:8080", "http://proxy.example:8080"),
            ("http://10.0.0.1", "http://10.0.0.1:80"),
            ("socks5h://[::1]", "socks5h://[::1]:1080"),
            ("socks5://[::1]:9", "socks5h://[::1]:9"),
        ] {
            assert_eq!(UpstreamProxy::parse(url).unwrap().to_string(), shown);
        }
        for url in [
            "",
            "https://proxy.example",
            "http://:80",
            "http://a b:80",
            "http://a:x",
            "http://%zz@a:1",
            "http://a%0d%0a:b@c:1",
        ] {
            let error = UpstreamProxy::parse(url).unwrap_err();
            assert!(error.starts_with("the URL of a proxy"), "{url}: {error}");
        }
    }

    #[test]
    fn variables_name_proxies_for_ports_and_exceptions() {
        let variable = |name: &str| {
            let value = match name {
                "https_proxy" => "http://a.example:1",
                "HTTPS_PROXY" => "http://b.example:1",
                "ALL_PROXY" => "socks5h://c.example:2",
                "no_proxy" => ".internal.example",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let proxies = UpstreamProxies::from_variables(variable).unwrap();
        let of = |host: &str, port| {
            proxies.of(&Host::parse(host).unwrap(), port).map(ToString::to_string)
        };
        assert_eq!(of("x.example", 443).unwrap(), "http://a.example:1");
        assert_eq!(of("x.example", 80).unwrap(), "socks5h://c.example:2");
        for direct in ["db.internal.example", "127.0.0.1", "::1", "a.localhost"] {
            assert_eq!(of(direct, 443), None, "{direct}");
        }
        let error = UpstreamProxies::from_variables(|name| {
            (name == "HTTP_PROXY").then(|| "https://secret@a.example".to_owned())
        });
        let error = error.unwrap_err();
        assert!(error.starts_with("HTTP_PROXY: ") && !error.contains("secret"), "{error}");
        assert!(UpstreamProxies::from_variables(|_| None).unwrap().is_empty());
    }
}
