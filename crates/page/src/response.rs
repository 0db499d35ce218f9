//! Responses, with the headers that all of them have.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::assets::Asset;

pub(crate) type PageResponse = Response<BoxBody<Bytes, Infallible>>;

/// Scripts and styles are files of the page, and no text becomes markup or a script.
const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; worker-src 'self'; img-src 'self' data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types toolcrib";

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, SECURITY_POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// A file of the page.
pub(crate) fn asset(asset: &'static Asset) -> PageResponse {
    whole(StatusCode::OK, asset.content_type, Bytes::from_static(asset.bytes))
}

/// The result of a request to the API.
pub(crate) fn json(result: Result<Value, ApiError>) -> PageResponse {
    let (status, value) = match result {
        Ok(value) => (StatusCode::OK, value),
        Err(error) => (error.status, error.body()),
    };
    whole(status, "application/json", value.to_string().into())
}

/// The refusal of a request. It closes the connection, so that each request without the token costs a new one.
pub(crate) fn refusal(error: ApiError) -> PageResponse {
    let status = error.status;
    let mut response = json(Err(error));
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, POST"));
    }
    response
}

/// A response with this body, which may be a stream.
pub(crate) fn with_body(
    status: StatusCode,
    content_type: &'static str,
    body: BoxBody<Bytes, Infallible>,
) -> PageResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    add_headers(response.headers_mut());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn whole(status: StatusCode, content_type: &'static str, bytes: Bytes) -> PageResponse {
    with_body(status, content_type, Full::new(bytes).boxed())
}

fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
