//! Decides which requests are processed, by the head alone, before the body is read.

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use toolcrib_http::{FETCH_SITE, Refusal, Token, bearer, is_json, is_repeated};

use super::server_names::Names;
use super::workspace_id::WORKSPACE_PARAMETER;
use crate::client_session::SHARED_SESSION;

/// The only path of a server with one workspace.
pub(super) const PATH: &str = "/mcp";

/// Headers that must not occur twice: another program on the path could use the other one.
const SINGLE: [HeaderName; 7] = [
    HOST,
    ORIGIN,
    FETCH_SITE,
    CONTENT_TYPE,
    HeaderName::from_static("mcp-session-id"),
    SHARED_SESSION,
    WORKSPACE_PARAMETER,
];

/// The head of a request.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) headers: &'a HeaderMap,
}

impl<'a> Head<'a> {
    pub(super) fn of<B>(request: &'a Request<B>) -> Self {
        Head { method: request.method(), uri: request.uri(), headers: request.headers() }
    }
}

impl<'a> From<&'a Parts> for Head<'a> {
    fn from(head: &'a Parts) -> Self {
        Head { method: &head.method, uri: &head.uri, headers: &head.headers }
    }
}

/// Decides which requests a server with one workspace and one token answers.
pub struct Guard {
    token: Token,
    heads: HeadCheck,
}

impl Guard {
    /// Creates a guard for a server on a local port, or on a socket without one. `hosts` are the names of proxies
    /// in front of it, as in [`super::HttpOptions`]. Fails if one is not a host name.
    pub fn new(token: Token, hosts: &[String], port: Option<u16>) -> Result<Self, String> {
        Ok(Guard { token, heads: HeadCheck::new(hosts, port)? })
    }

    /// The same with names that were checked.
    pub(super) fn with_heads(token: Token, heads: HeadCheck) -> Self {
        Guard { token, heads }
    }

    /// Decides on a request by its head.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        self.check_head(Head::of(request))
    }

    pub(super) fn check_head(&self, head: Head<'_>) -> Result<(), Refusal> {
        if !bearer(head.headers).is_some_and(|given| self.token.is(given)) {
            return Err(WRONG_TOKEN);
        }
        HeadCheck::check_target(head)?;
        check_path(head)?;
        self.heads.check_headers(head)
    }
}

/// Checks the path of a request to a server with one workspace.
pub(super) fn check_path(head: Head<'_>) -> Result<(), Refusal> {
    if head.uri.path() == PATH { Ok(()) } else { refuse(StatusCode::NOT_FOUND, "MCP is at /mcp.") }
}

/// The refusal of a request without a valid token.
pub(super) const WRONG_TOKEN: Refusal = Refusal {
    status: StatusCode::UNAUTHORIZED,
    sentence: "The token is missing or wrong. Send `Authorization: Bearer TOKEN`; toolcrib serve prints the path of the token file when it starts.",
};

/// The checks that depend neither on the token nor on the path.
pub(super) struct HeadCheck {
    names: Names,
}

impl HeadCheck {
    /// For a server on a local port, or on a socket without one. Fails if one of the `hosts` is not a host name.
    pub(super) fn new(hosts: &[String], port: Option<u16>) -> Result<Self, String> {
        let names = Names::new(hosts, port)
            .map_err(|name| format!("`{name}` is not a host name or NAME:PORT"))?;
        Ok(HeadCheck { names })
    }

    /// Checks that the target is a path alone. A target with a host could contradict the Host header.
    pub(super) fn check_target(head: Head<'_>) -> Result<(), Refusal> {
        let target = head.uri;
        if target.scheme().is_some() || target.authority().is_some() {
            return refuse(StatusCode::BAD_REQUEST, "Send only the path as the request target.");
        }
        Ok(())
    }

    /// Checks the headers.
    pub(super) fn check_headers(&self, head: Head<'_>) -> Result<(), Refusal> {
        let headers = head.headers;
        if SINGLE.iter().any(|name| is_repeated(headers, name)) {
            return refuse(
                StatusCode::BAD_REQUEST,
                "A header that is allowed only once occurs twice.",
            );
        }
        let Some(host) = headers.get(HOST) else {
            return refuse(StatusCode::BAD_REQUEST, "The Host header is missing.");
        };
        if !host.to_str().is_ok_and(|host| self.names.is_host(host)) {
            return refuse(
                StatusCode::FORBIDDEN,
                "The Host header is not a name of this server. Use the address that toolcrib serve prints when it starts, or start it with --allow-host.",
            );
        }
        let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        if !origin.is_none_or(|origin| self.names.is_origin(origin)) {
            return refuse(StatusCode::FORBIDDEN, "Requests from that Origin are refused.");
        }
        let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
        if !matches!(site, None | Some(b"none" | b"same-origin")) {
            return refuse(StatusCode::FORBIDDEN, "Requests from other sites are refused.");
        }
        // Browsers let any page send other content types without a preflight request.
        if head.method == Method::POST && !is_json(headers) {
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Send `Content-Type: application/json`.",
            );
        }
        Ok(())
    }
}

fn refuse(status: StatusCode, sentence: &'static str) -> Result<(), Refusal> {
    Err(Refusal { status, sentence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> (Guard, String) {
        let token = "0123456789".repeat(5);
        (Guard::new(Token::new(&token).unwrap(), &[], Some(8765)).unwrap(), token)
    }

    fn check(target: &str, more: &[(&str, &str)]) -> u16 {
        let (guard, token) = guard();
        let mut request = Request::builder().method("POST").uri(target);
        let usual = [
            ("host", "localhost:8765".to_owned()),
            ("authorization", format!("Bearer {token}")),
            ("content-type", "application/json".to_owned()),
        ];
        for (name, value) in usual {
            request = request.header(name, value);
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        guard.check(&request).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn a_repeated_header_is_refused() {
        assert_eq!(check("/mcp", &[]), 200);
        for (name, value) in [
            ("host", "localhost:8765"),
            ("host", "evil.example"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(check("/mcp", &[(name, value)]), 400, "{name}: {value}");
        }
        let own = "http://localhost:8765";
        assert_eq!(check("/mcp", &[("origin", own)]), 200);
        assert_eq!(check("/mcp", &[("origin", own), ("origin", "https://evil.example")]), 400);
        assert_eq!(check("/mcp", &[("authorization", "Bearer x")]), 401);
    }

    #[test]
    fn a_target_with_a_host_is_refused() {
        for target in ["http://evil.example/mcp", "http://localhost:8765/mcp", "localhost:8765"] {
            assert_eq!(check(target, &[]), 400, "{target}");
        }
        assert_eq!(check("/mcp/", &[]), 404);
        assert_eq!(check("*", &[]), 404);
    }

    #[test]
    fn cross_site_requests_are_refused() {
        for (site, expected) in [
            ("none", 200),
            ("same-origin", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("", 403),
            ("None", 403),
        ] {
            assert_eq!(check("/mcp", &[("sec-fetch-site", site)]), expected, "{site}");
        }
    }
}
