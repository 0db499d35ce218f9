//! Decides which requests are processed, by the head alone.

use std::net::IpAddr;

use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{StatusCode, Uri};
use toolcrib_http::{FETCH_SITE, Refusal, Token, bearer, is_repeated};

/// Who is served.
#[derive(Debug)]
pub enum Access {
    /// Everybody with this token.
    Token(Token),
    /// Everybody who reaches the address: a network policy decides who does. The clients of agent-sandbox send no token.
    Network,
}

/// Headers that must not occur twice: another program on the path could use the other one.
const SINGLE: [HeaderName; 3] = [HOST, ORIGIN, FETCH_SITE];

const WRONG_TOKEN: Refusal = Refusal {
    status: StatusCode::UNAUTHORIZED,
    sentence: "The token is missing or wrong. Send `Authorization: Bearer TOKEN`; toolcrib sandboxd prints the path of the token file when it starts.",
};

const FROM_BROWSER: Refusal =
    Refusal { status: StatusCode::FORBIDDEN, sentence: "Requests from web pages are refused." };

const OTHER_HOST: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    sentence: "The host of the request is not this machine. Use an IP address or localhost.",
};

const TWICE: Refusal = Refusal {
    status: StatusCode::BAD_REQUEST,
    sentence: "A header that is allowed only once occurs twice.",
};

/// The checks of one listener.
pub(crate) struct HeadCheck {
    /// Whether only this machine reaches it. Then a host name must be a local one: a web page could give its own name this
    /// address.
    pub(crate) is_local: bool,
}

impl HeadCheck {
    /// Refuses requests that a browser could have been made to send.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        if SINGLE.iter().any(|name| is_repeated(headers, name)) {
            return Err(TWICE);
        }
        if headers.contains_key(ORIGIN) || headers.contains_key(FETCH_SITE) {
            return Err(FROM_BROWSER);
        }
        let in_header = headers.get(HOST).and_then(|host| host.to_str().ok());
        // HTTP/2 has it in the target.
        let host = uri.authority().map(hyper::http::uri::Authority::as_str).or(in_header);
        if self.is_local && !host.is_some_and(is_local_host) {
            return Err(OTHER_HOST);
        }
        Ok(())
    }
}

impl Access {
    /// Refuses requests without the token.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self {
            Access::Network => Ok(()),
            Access::Token(token) => {
                let is_right = bearer(headers).is_some_and(|given| token.is(given));
                if is_right { Ok(()) } else { Err(WRONG_TOKEN) }
            }
        }
    }
}

/// Whether a `Host` names this machine, on any port: a tunnel may have another one.
fn is_local_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn status(is_local: bool, pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        let checked = HeadCheck { is_local }.check(&Uri::from_static("/v1/health"), &headers);
        checked.err().map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn names_of_this_machine_are_accepted_on_any_port() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080", "10.1.2.3"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:8080", "localhost.evil.example", "1.evil"] {
            assert!(!is_local_host(host), "{host}");
        }
    }

    #[test]
    fn a_web_page_cannot_send_requests() {
        assert_eq!(status(true, &[("host", "localhost:8080")]), None);
        assert_eq!(status(true, &[("host", "rebound.example:8080")]), Some(403));
        assert_eq!(status(true, &[]), Some(403));
        assert_eq!(status(false, &[("host", "pod.svc.cluster.local")]), None);
        for is_local in [true, false] {
            let host = ("host", "localhost");
            assert_eq!(status(is_local, &[host, ("origin", "http://localhost")]), Some(403));
            assert_eq!(status(is_local, &[host, ("sec-fetch-site", "none")]), Some(403));
            assert_eq!(status(is_local, &[host, host]), Some(400));
        }
    }

    #[test]
    fn a_token_is_required_if_there_is_one() {
        let text = "0123456789".repeat(5);
        let access = Access::Token(Token::new(&text).unwrap());
        let mut headers = HeaderMap::new();
        assert!(access.check(&headers).is_err());
        assert!(Access::Network.check(&headers).is_ok());
        headers.insert("authorization", HeaderValue::from_str(&format!("Bearer {text}")).unwrap());
        assert!(access.check(&headers).is_ok());
    }
}
