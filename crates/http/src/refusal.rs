//! The refusal of a request, before its body is processed.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

/// The seconds after which a request is worth repeating that was refused because the server is busy.
const RETRY_SECONDS: &str = "5";

/// The refusal of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response.
    pub status: StatusCode,
    /// The body of the response: how to fix the request.
    pub sentence: &'static str,
}

impl Refusal {
    /// The response. It closes the connection, so that each request without the token costs a new connection.
    pub fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from_static(self.sentence.as_bytes())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&self.status) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}
