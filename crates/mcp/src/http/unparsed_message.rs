//! The answer to a body that is not a message of the protocol: an error of JSON-RPC.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::json_rpc_error::json_rpc_error;

/// Codes of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

/// The answer to a body that the protocol's HTTP layer could not parse.
pub(super) fn unparsed_message(body: &[u8]) -> Response<Full<Bytes>> {
    let parsed: Result<Value, _> = serde_json::from_slice(body);
    let (code, message) = match &parsed {
        Err(error) => (PARSE_ERROR, format!("The body is not valid JSON: {error}.")),
        Ok(Value::Array(_)) => (
            INVALID_REQUEST,
            "Batches are not supported. Send each message in a request of its own.".to_owned(),
        ),
        Ok(_) => (
            INVALID_REQUEST,
            "The body is not a message of MCP: it needs `\"jsonrpc\": \"2.0\"`, and a `method` with its `params`, a `result` or an `error`."
                .to_owned(),
        ),
    };
    let id =
        parsed.ok().and_then(|message| serde_json::from_value(message.get("id")?.clone()).ok());
    let error = json!({"code": code, "message": message});
    json_rpc_error(StatusCode::BAD_REQUEST, id.as_ref(), &error)
}
