//! Decides which requests are processed, by the head alone, before the body is read.

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, Request, StatusCode};
use toolcrib_http::{FETCH_SITE, bearer, is_json, is_repeated};

use crate::api_error::ApiError;
use crate::sign_in::{Browser, SignIn};

/// Headers that must not occur twice.
const SINGLE: [HeaderName; 5] = [HOST, ORIGIN, FETCH_SITE, CONTENT_TYPE, AUTHORIZATION];

/// The longest request target: a search has a text and some names.
const MAX_TARGET_BYTES: usize = 8 << 10;

/// The names of this server.
pub(crate) struct ServerNames {
    hosts: [String; 2],
    origins: [String; 2],
}

impl ServerNames {
    /// The names of a server on a port of 127.0.0.1.
    pub(crate) fn new(port: u16) -> ServerNames {
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let origins = hosts.clone().map(|host| format!("http://{host}"));
        ServerNames { hosts, origins }
    }

    /// Checks that a request was sent to this server by its own page, whoever sent it.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        let (headers, target) = (request.headers(), request.uri());
        // A target with a host could contradict the Host header.
        if target.scheme().is_some() || target.authority().is_some() {
            return Err(ApiError::invalid("Send only a path as the request target."));
        }
        if target.path_and_query().is_some_and(|target| target.as_str().len() > MAX_TARGET_BYTES) {
            return Err(ApiError::new(
                StatusCode::URI_TOO_LONG,
                "invalid",
                "The path is too long.",
            ));
        }
        if SINGLE.iter().any(|name| is_repeated(headers, name)) {
            return Err(ApiError::invalid("A header that is allowed only once occurs twice."));
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.hosts.iter().any(|own| own == host)) {
            let message = "The Host header is not a name of this server.";
            return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "invalid", message));
        }
        if !matches!(*request.method(), Method::GET | Method::POST) {
            let message = "Only GET and POST are supported.";
            return Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", message));
        }
        let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
        if !matches!(site, None | Some(b"none" | b"same-origin")) {
            return Err(forbidden("Requests from other sites are refused."));
        }
        let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        if !origin.is_none_or(|origin| self.origins.iter().any(|own| own == origin)) {
            return Err(forbidden("Requests from that Origin are refused."));
        }
        if request.method() == Method::POST {
            if origin.is_none() {
                return Err(forbidden("The Origin header is missing."));
            }
            if !is_json(headers) {
                let message = "Send `Content-Type: application/json`.";
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                return Err(ApiError::new(status, "invalid", message));
            }
        }
        Ok(())
    }
}

/// Checks that the page itself asks for a stream. A browser sends no `Origin` with a GET request of the same origin,
/// but says so in `Sec-Fetch-Site`.
pub(crate) fn check_stream<B>(request: &Request<B>) -> Result<(), ApiError> {
    let headers = request.headers();
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    if headers.contains_key(ORIGIN) || site == Some(b"same-origin") {
        Ok(())
    } else {
        Err(forbidden("The Origin header is missing."))
    }
}

/// Checks the token. Returns the browser that has it.
pub(crate) fn check_token<B>(request: &Request<B>, sign_in: &SignIn) -> Result<Browser, ApiError> {
    let browser = bearer(request.headers()).and_then(|token| sign_in.browser(token));
    browser.ok_or_else(|| {
        let message =
            "The token is missing or wrong. Open the address that `toolcrib page` prints.";
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    })
}

fn forbidden(message: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let checked = ServerNames::new(8765).check(&request);
        checked.map_or_else(|error| error.status.as_u16(), |()| 200)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8765");
    const OWN: (&str, &str) = ("origin", "http://127.0.0.1:8765");
    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn only_exact_host_names_are_answered() {
        for (host, expected) in [
            ("127.0.0.1:8765", 200),
            ("localhost:8765", 200),
            ("127.0.0.1", 421),
            ("localhost", 421),
            ("LOCALHOST:8765", 421),
            ("localhost.:8765", 421),
            ("127.0.0.1:8766", 421),
            ("[::1]:8765", 421),
            ("evil.example:8765", 421),
            ("127.0.0.1:8765.evil.example", 421),
            ("", 421),
        ] {
            assert_eq!(check("GET", "/", &[("host", host)]), expected, "{host}");
        }
        assert_eq!(check("GET", "/", &[]), 421);
        assert_eq!(check("GET", "/", &[HOST, HOST]), 400);
        assert_eq!(check("GET", "http://127.0.0.1:8765/", &[HOST]), 400);
    }

    #[test]
    fn a_post_needs_our_origin_and_json() {
        let post = |headers: &[(&str, &str)]| check("POST", "/api/visible", headers);
        assert_eq!(post(&[HOST, OWN, JSON]), 200);
        assert_eq!(post(&[HOST, ("origin", "http://localhost:8765"), JSON]), 200);
        assert_eq!(post(&[HOST, JSON]), 403);
        for origin in ["null", "http://evil.example", "https://127.0.0.1:8765", "http://127.0.0.1"]
        {
            assert_eq!(post(&[HOST, ("origin", origin), JSON]), 403, "{origin}");
        }
        assert_eq!(post(&[HOST, OWN]), 415);
        assert_eq!(post(&[HOST, OWN, ("content-type", "text/plain")]), 415);
        assert_eq!(post(&[HOST, OWN, JSON, ("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(post(&[HOST, OWN, JSON, ("sec-fetch-site", "same-site")]), 403);
        assert_eq!(post(&[HOST, OWN, JSON, ("sec-fetch-site", "same-origin")]), 200);
    }

    #[test]
    fn other_methods_and_long_targets_are_refused() {
        for method in ["HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH"] {
            assert_eq!(check(method, "/", &[HOST, OWN, JSON]), 405, "{method}");
        }
        assert_eq!(check("GET", &format!("/{}", "a".repeat(9000)), &[HOST]), 414);
    }

    #[test]
    fn a_stream_needs_a_sign_of_our_page() {
        let stream = |headers: &[(&str, &str)]| {
            let request = Request::builder().uri("/api/events");
            let add = |request: hyper::http::request::Builder, (name, value): &(&str, &str)| {
                request.header(*name, *value)
            };
            let request = headers.iter().fold(request, add).body(()).unwrap();
            check_stream(&request).is_ok()
        };
        assert!(stream(&[OWN]) && stream(&[("sec-fetch-site", "same-origin")]));
        assert!(!stream(&[]) && !stream(&[("sec-fetch-site", "none")]));
    }
}
