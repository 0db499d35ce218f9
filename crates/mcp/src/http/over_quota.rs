//! Calls beyond a limit of the host, which are refused before they begin: with a status that proxies and clients know, and an
//! error of JSON-RPC that names the limit.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use serde_json::{Value, json};
use toolcrib::OverQuota;

use super::json_rpc_error::json_rpc_error;

/// The code of JSON-RPC for errors of a server.
const SERVER_ERROR: i32 = -32_000;

/// A call that is refused.
#[derive(Debug)]
pub(super) struct RefusedCall {
    id: RequestId,
    over: OverQuota,
}

/// The call in a message, if it is beyond a limit. `check` knows the limits.
///
/// The body is read as the protocol reads it. A call that cannot be read here is counted when it runs.
pub(super) fn refused_call(
    body: &[u8],
    check: impl Fn(&str, &Value) -> Result<(), OverQuota>,
) -> Option<RefusedCall> {
    let message = serde_json::from_slice(body).ok()?;
    let ClientJsonRpcMessage::Request(message) = message else { return None };
    let ClientRequest::CallToolRequest(call) = message.request else { return None };
    let arguments = Value::Object(call.params.arguments.unwrap_or_default());
    let over = check(&call.params.name, &arguments).err()?;
    Some(RefusedCall { id: message.id, over })
}

impl RefusedCall {
    /// The response.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let (status, seconds) = (StatusCode::TOO_MANY_REQUESTS, self.over.retry_seconds());
        let data = json!({
            "status": status.as_u16(),
            "limit": self.over.limit,
            "retry_after_seconds": seconds,
        });
        let error = json!({"code": SERVER_ERROR, "message": self.over.message, "data": data});
        let mut response = json_rpc_error(status, Some(&self.id), &error);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;

    fn over(_: &str, _: &Value) -> Result<(), OverQuota> {
        let (message, retry_after) = ("used up".to_owned(), Duration::from_millis(1_200));
        Err(OverQuota { limit: "calls-per-minute", message, retry_after })
    }

    #[test]
    fn only_a_call_is_refused() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"x"}}}"#;
        assert!(refused_call(call.as_bytes(), over).is_some());
        let seen = |tool: &str, arguments: &Value| {
            assert_eq!((tool, arguments), ("Bash", &json!({"command": "x"})));
            Ok(())
        };
        assert!(refused_call(call.as_bytes(), seen).is_none());
        for body in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#,
            "[]",
            "",
        ] {
            assert!(refused_call(body.as_bytes(), over).is_none(), "{body}");
        }
    }

    #[test]
    fn the_response_is_an_error_for_the_call() {
        let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"Read"}}"#;
        let response = refused_call(call.as_bytes(), over).unwrap().response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()[RETRY_AFTER]),
            (429, &HeaderValue::from(2))
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
        let expected = json!({"jsonrpc": "2.0", "id": "a", "error": {
            "code": -32_000,
            "message": "used up",
            "data": {"status": 429, "limit": "calls-per-minute", "retry_after_seconds": 2},
        }});
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
    }
}
