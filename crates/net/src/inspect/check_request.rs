//! Checks that a request names the host of its connection, and that its path has one meaning.

use hyper::header::{self, HeaderMap};
use hyper::{Method, Request, Uri, Version};

use super::headers::{override_in, tokens};
use crate::host::Host;
use crate::request_path::RequestPath;

/// The longest path in a message.
const MAX_SHOWN: usize = 200;

/// The only protocol that a connection may change to.
pub(super) const WEBSOCKET: &str = "websocket";

/// The host that the requests of a connection must name.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) is_tls: bool,
}

/// A request that may be decided on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckedRequest {
    pub(super) path: RequestPath,
    /// The host and the port, as the client has written them.
    pub(super) authority: String,
    pub(super) is_upgrade: bool,
}

/// The method and the path of a request, for messages: without the query, which may have secrets.
pub(super) fn subject<B>(request: &Request<B>) -> String {
    let visible = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    let path: String = request.uri().path().chars().take(MAX_SHOWN).map(visible).collect();
    let method: String = request.method().as_str().chars().take(MAX_SHOWN).collect();
    format!("{method} {path}")
}

/// Checks a request. Fails with the reason.
pub(super) fn check<B>(
    request: &Request<B>,
    expected: &Expected,
) -> Result<CheckedRequest, String> {
    let (uri, headers) = (request.uri(), request.headers());
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        return Err(format!("{} is not allowed on inspected hosts", request.method()));
    }
    let authority = authority(request, expected)?;
    let scheme = if expected.is_tls { "https" } else { "http" };
    if uri.scheme_str().is_some_and(|named| named != scheme) {
        return Err(format!("the request does not name the scheme {scheme}"));
    }
    let codings: Vec<String> = tokens(headers, &header::TRANSFER_ENCODING).collect();
    if !codings.iter().all(|coding| coding == "chunked") || codings.len() > 1 {
        return Err("the request has a transfer coding other than chunked".to_owned());
    }
    if let Some(name) = override_in(headers) {
        return Err(format!("the header {name} could override the method or the path"));
    }
    let path = RequestPath::parse(target(uri)).map_err(|problem| format!("the path {problem}"))?;
    Ok(CheckedRequest { path, authority, is_upgrade: is_upgrade(headers) })
}

/// The path and the query, as they were sent.
fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

/// The host that a request names.
fn authority<B>(request: &Request<B>, expected: &Expected) -> Result<String, String> {
    let hosts = request.headers().get_all(header::HOST);
    if hosts.iter().count() > 1 {
        return Err("the request names more than one host".to_owned());
    }
    let in_header = hosts.iter().next().map(|host| host.to_str().unwrap_or_default());
    let in_target = request.uri().authority().map(|authority| authority.as_str());
    for named in in_header.into_iter().chain(in_target) {
        if !expected.is_named_by(named) {
            let shown: String = named.chars().take(MAX_SHOWN).collect();
            return Err(format!("the request names the host {shown:?}"));
        }
    }
    // In one spelling: some servers treat a final dot or an explicit port as another host.
    if in_header.or(in_target).is_some() || request.version() == Version::HTTP_10 {
        return Ok(expected.authority());
    }
    Err("the request names no host".to_owned())
}

impl Expected {
    fn default_port(&self) -> u16 {
        if self.is_tls { 443 } else { 80 }
    }

    fn authority(&self) -> String {
        if self.port == self.default_port() {
            return self.host.to_string();
        }
        format!("{}:{}", self.host, self.port)
    }

    /// Whether a text names this host and this port.
    fn is_named_by(&self, text: &str) -> bool {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (text, None),
        };
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse() == Ok(self.port)
        };
        Host::parse(host).as_ref() == Some(&self.host)
            && port.map_or(self.port == self.default_port(), is_port)
    }
}

/// Whether the client asks for a WebSocket, and nothing else. Another protocol could carry more requests.
fn is_upgrade(headers: &HeaderMap) -> bool {
    let is_asked = tokens(headers, &header::CONNECTION).any(|token| token == "upgrade");
    let protocols: Vec<String> = tokens(headers, &header::UPGRADE).collect();
    is_asked && protocols == [WEBSOCKET]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Expected {
        Expected { host: Host::parse("a.example").unwrap(), port: 443, is_tls: true }
    }

    fn request(target: &str, headers: &[(&str, &str)]) -> Request<()> {
        let built = headers
            .iter()
            .fold(Request::get(target), |built, (name, value)| built.header(*name, *value));
        built.body(()).unwrap()
    }

    fn checked(target: &str, headers: &[(&str, &str)]) -> Result<CheckedRequest, String> {
        check(&request(target, headers), &expected())
    }

    #[test]
    fn requests_name_the_host_of_the_connection() {
        for (target, host) in [
            ("/x", "a.example"),
            ("/x", "A.Example:443"),
            ("/x", "a.example."),
            ("https://a.example/x", "a.example"),
        ] {
            assert!(checked(target, &[("host", host)]).is_ok(), "{target} {host}");
        }
        assert!(checked("https://a.example/x", &[]).is_ok(), "as in HTTP/2");
        for (target, host) in [
            ("/x", "b.example"),
            ("/x", "a.example:80"),
            ("/x", "a.example:+443"),
            ("/x", "me@a.example"),
            ("/x", "a.example, b.example"),
            ("/x", ""),
            ("https://b.example/x", "a.example"),
            ("https://a.example/x", "b.example"),
            ("https://me@a.example/x", "a.example"),
            ("http://a.example/x", "a.example"),
        ] {
            assert!(checked(target, &[("host", host)]).is_err(), "{target} {host}");
        }
        assert!(checked("/x", &[]).is_err());
        assert!(checked("/x", &[("host", "a.example"), ("host", "a.example")]).is_err());
    }

    #[test]
    fn odd_requests_are_refused() {
        let host = ("host", "a.example");
        for (target, header) in [
            ("/a/../b", ("x", "y")),
            ("*", ("x", "y")),
            ("/x", ("transfer-encoding", "gzip, chunked")),
            ("/x", ("transfer-encoding", "chunked, chunked")),
            ("/x", ("x-http-method-override", "DELETE")),
        ] {
            assert!(checked(target, &[host, header]).is_err(), "{target} {header:?}");
        }
        for method in [Method::CONNECT, Method::TRACE] {
            let mut odd = request("/x", &[host]);
            *odd.method_mut() = method;
            assert!(check(&odd, &expected()).is_err());
        }
    }

    #[test]
    fn upgrades_are_recognized() {
        let is_upgrade = |upgrade: &str, connection: &str| {
            let headers = [("host", "a.example"), ("upgrade", upgrade), ("connection", connection)];
            checked("/", &headers).unwrap().is_upgrade
        };
        assert!(is_upgrade("websocket", "keep-alive, Upgrade"));
        assert!(!is_upgrade("h2c", "Upgrade, HTTP2-Settings"));
        assert!(!is_upgrade("websocket", "keep-alive"));
    }

    #[test]
    fn messages_have_no_query() {
        assert_eq!(subject(&request("/a?token=x", &[])), "GET /a");
        assert!(subject(&request(&format!("/{}", "a".repeat(1000)), &[])).len() < 250);
    }
}
