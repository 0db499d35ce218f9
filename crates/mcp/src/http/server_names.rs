//! The allowed names of the server, for checking `Host` and `Origin`.

/// Names that always mean this machine.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The default port of a TLS proxy.
const TLS_PORT: u16 = 443;

/// The names of one server.
pub(super) struct Names {
    hosts: Vec<Host>,
    origins: Vec<String>,
}

struct Host {
    /// In lower case, without brackets.
    name: String,
    port: Port,
}

enum Port {
    /// A socket path has no port to compare.
    Any,
    /// This port, or none if `optional`.
    Only { port: u16, optional: bool },
}

impl Names {
    /// The names of a server on this port, if it has one, and of the proxies in front of it: `NAME` for a proxy on
    /// the default TLS port, or `NAME:PORT`. The error is an invalid name.
    pub(super) fn new(proxies: &[String], port: Option<u16>) -> Result<Names, String> {
        let (mut hosts, mut origins) = (Vec::new(), Vec::new());
        for name in OWN {
            let own = match port {
                None => Port::Any,
                Some(port) => Port::Only { port, optional: true },
            };
            hosts.push(Host { name: name.to_owned(), port: own });
            if let Some(port) = port {
                origins.push(origin("http", name, port, 80));
            }
        }
        for proxy in proxies {
            let (name, port) = split(proxy).ok_or_else(|| proxy.clone())?;
            let only = Port::Only { port: port.unwrap_or(TLS_PORT), optional: port.is_none() };
            origins.push(origin("https", &name, port.unwrap_or(TLS_PORT), TLS_PORT));
            hosts.push(Host { name, port: only });
        }
        Ok(Names { hosts, origins })
    }

    /// Whether a `Host` header has one of the names.
    pub(super) fn is_host(&self, text: &str) -> bool {
        let Some((name, port)) = split(text) else { return false };
        self.hosts.iter().any(|host| {
            host.name == name
                && match host.port {
                    Port::Any => true,
                    Port::Only { port: own, optional } => port.map_or(optional, |port| port == own),
                }
        })
    }

    /// Whether an `Origin` header has one of the names, in the spelling of browsers.
    pub(super) fn is_origin(&self, text: &str) -> bool {
        self.origins.iter().any(|origin| origin.eq_ignore_ascii_case(text))
    }
}

/// A name and a port as browsers write them: without the default port of the scheme.
fn origin(scheme: &str, name: &str, port: u16, usual: u16) -> String {
    let name = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    if port == usual { format!("{scheme}://{name}") } else { format!("{scheme}://{name}:{port}") }
}

/// Whether a text is a host, or a host and a port.
pub(super) fn is_host_and_port(text: &str) -> bool {
    split(text).is_some()
}

/// A name, in lower case and without brackets, and its port.
fn split(text: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, behind) = rest.split_once(']')?;
            let is_address = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
            (is_address.then_some(name)?, behind)
        }
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let is_name = !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            (is_name.then_some(name)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        // Nobody writes a port with a zero first, and other programs might read it as octal.
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|_| !digits.starts_with('0'))?)
        }
        _ => return None,
    };
    Some((name.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_header_must_have_an_allowed_name_and_port() {
        let proxies = ["tools.example".to_owned(), "Other.example:8443".to_owned()];
        let names = Names::new(&proxies, Some(8765)).unwrap();
        for host in [
            "localhost",
            "LOCALHOST:8765",
            "127.0.0.1:8765",
            "[::1]:8765",
            "[::1]",
            "tools.example",
            "tools.example:443",
            "other.example:8443",
        ] {
            assert!(names.is_host(host), "{host}");
        }
        for host in [
            "",
            "127.0.0.1:1",
            "localhost:",
            "localhost:99999",
            "localhost:+8765",
            "localhost:08765",
            "localhost:0",
            "localhost:8765:8765",
            "localhost.",
            "localhost.evil.example:8765",
            "user@localhost:8765",
            "localhost:8765@evil.example",
            "localhost:8765/",
            "::1",
            "[::1",
            "[]:8765",
            "[::1]8765",
            "127.0.0.2:8765",
            "tools.example:8765",
            "other.example",
            "evil.example",
        ] {
            assert!(!names.is_host(host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_compared_as_a_whole() {
        let names = Names::new(&["tools.example".to_owned()], Some(8765)).unwrap();
        for origin in ["http://localhost:8765", "http://[::1]:8765", "https://tools.example"] {
            assert!(names.is_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:1",
            "https://localhost:8765",
            "http://localhost:8765.evil.example",
            "http://tools.example",
        ] {
            assert!(!names.is_origin(origin), "{origin}");
        }
    }

    #[test]
    fn socket_paths_and_proxy_names_are_accepted() {
        let names = Names::new(&[], None).unwrap();
        assert!(names.is_host("localhost") && names.is_host("localhost:80"));
        assert!(!names.is_host("evil.example") && !names.is_origin("http://localhost"));
        for bad in ["", "a b", "https://x", "x:y", "*"] {
            assert_eq!(Names::new(&[bad.to_owned()], None).err().as_deref(), Some(bad));
        }
    }
}
