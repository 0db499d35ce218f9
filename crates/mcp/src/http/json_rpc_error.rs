//! Errors of JSON-RPC as HTTP responses.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use rmcp::model::RequestId;
use serde_json::{Value, json};

/// The response with an error for a request. `id` is null if the request has none. The connection stays open, since it may
/// be a session.
pub(super) fn json_rpc_error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &Value,
) -> Response<Full<Bytes>> {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
