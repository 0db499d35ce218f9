//! Reads headers that decide on a request.

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName};

/// The header in which a browser reports the origin of a request.
pub const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The token of a request, from its `Authorization` header only.
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (all.next()?, all.next());
    let (scheme, token) = first.as_bytes().split_at_checked(b"Bearer ".len())?;
    (second.is_none() && scheme.eq_ignore_ascii_case(b"Bearer ")).then(|| token.trim_ascii())
}

/// Whether the body is declared as JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether a header occurs more than once. Another program on the path could use the other one.
pub fn is_repeated(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}
