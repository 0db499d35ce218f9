//! Responses.

use std::io;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde_json::{Value, json as json_value};
use toolcrib::backend::FileReader;
use toolcrib_http::Refusal;

use super::file_body::FileBody;
use crate::error_status::RestError;

pub(crate) type RestResponse = Response<BoxBody<Bytes, io::Error>>;

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The seconds after which a request is worth repeating that was refused because the server is busy.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("5");

pub(super) fn json(value: &Value) -> RestResponse {
    let body = Full::new(Bytes::from(value.to_string()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

pub(super) fn no_content() -> RestResponse {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The content of a file.
pub(super) fn content(file: FileReader) -> RestResponse {
    let mut response = Response::new(FileBody::new(file).boxed());
    response.headers_mut().insert(CONTENT_TYPE, OCTETS);
    response
}

/// The head of the response with a file of this size.
pub(super) fn content_head(size: u64) -> RestResponse {
    let mut response = Response::new(empty());
    response.headers_mut().insert(CONTENT_TYPE, OCTETS);
    response.headers_mut().insert(CONTENT_LENGTH, size.into());
    response
}

/// The head of the response with a listing.
pub(super) fn listing_head() -> RestResponse {
    let mut response = Response::new(empty());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

pub(super) fn error(error: RestError) -> RestResponse {
    let mut response = json(&json_value!({"code": error.code, "message": error.message}));
    *response.status_mut() = error.status;
    if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&error.status) {
        response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    }
    response
}

/// The response to a request that is not processed. It closes the connection: its body was not read.
pub(crate) fn refused(refusal: Refusal) -> RestResponse {
    let mut response = error(of_refusal(refusal));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    if refusal.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

pub(super) fn of_refusal(refusal: Refusal) -> RestError {
    let code = match refusal.status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => "RESOURCE_EXHAUSTED",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        StatusCode::REQUEST_TIMEOUT => "DEADLINE_EXCEEDED",
        _ => "INVALID_ARGUMENT",
    };
    RestError::new(refusal.status, code, refusal.sentence)
}

fn empty() -> BoxBody<Bytes, io::Error> {
    Empty::new().map_err(|never| match never {}).boxed()
}
