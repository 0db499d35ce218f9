//! Headers of requests and responses that belong to one connection, and headers that override a request.

use hyper::HeaderMap;
use hyper::header::{self, HeaderName};

/// Headers that belong to one connection.
const OF_CONNECTION: [HeaderName; 10] = [
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers that tell some servers to use another method, host or path than those of the request.
const OVERRIDES: [&str; 12] = [
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// Whether a header does not reach the other side as it is.
pub(super) fn is_of_connection(name: &HeaderName) -> bool {
    OF_CONNECTION.contains(name) || matches!(*name, header::HOST | header::CONTENT_LENGTH)
}

/// A header that overrides the method, the host or the path. Some servers read `_` in a name as `-`.
pub(super) fn override_in(headers: &HeaderMap) -> Option<&'static str> {
    let names: Vec<String> = headers.keys().map(|name| name.as_str().replace('_', "-")).collect();
    OVERRIDES.into_iter().find(|known| names.iter().any(|name| name == known))
}

/// Removes the headers that belong to one connection, and those that `Connection` names.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        tokens(headers, &header::CONNECTION).filter_map(|token| token.parse().ok()).collect();
    // `te: trailers` is a property of the client that servers of gRPC require.
    let accepts_trailers = tokens(headers, &header::TE).any(|token| token == "trailers");
    for name in OF_CONNECTION.iter().chain(&named) {
        if !matches!(*name, header::HOST | header::CONTENT_LENGTH) {
            headers.remove(name);
        }
    }
    if accepts_trailers {
        headers.insert(header::TE, header::HeaderValue::from_static("trailers"));
    }
}

/// The words of a header, in lower case.
pub(super) fn tokens(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let words = values.flat_map(|value| value.split(','));
    words
        .map(|word| word.trim().to_ascii_lowercase())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (HeaderName::from_static(name), header::HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    #[test]
    fn headers_of_one_connection_are_removed() {
        let mut all = headers(&[
            ("connection", "keep-alive, X-Mine, Content-Length, Host"),
            ("x-mine", "1"),
            ("x-other", "2"),
            ("host", "a.example"),
            ("content-length", "3"),
            ("proxy-authorization", "Basic x"),
            ("te", "trailers, gzip"),
            ("expect", "100-continue"),
        ]);
        strip(&mut all);
        let expected = headers(&[
            ("x-other", "2"),
            ("host", "a.example"),
            ("content-length", "3"),
            ("te", "trailers"),
        ]);
        assert_eq!(all, expected);
        assert_eq!(override_in(&all), None);
        for name in ["x-rewrite-url", "x_http_method_override", "x-original_url", "forwarded"] {
            assert!(override_in(&headers(&[(name, "/b")])).is_some(), "{name}");
        }
    }
}
