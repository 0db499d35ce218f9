//! A call, read straight from its line. The protocol's own types try one kind of message after the other, a dozen
//! before they come to this one, which is nearly all that is ever sent.

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage,
    ClientRequest, JsonRpcVersion2_0, RequestId,
};
use serde::Deserialize;

/// Clients name the method within so many bytes.
const HEAD_BYTES: usize = 256;

/// A call and nothing besides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    #[expect(dead_code, reason = "it must be present and valid")]
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[expect(dead_code, reason = "it must be present and valid")]
    method: CallToolRequestMethod,
    params: CallToolRequestParams,
}

/// The call that a line is, as the protocol's own types have it. What is not plainly one is left to them.
pub(crate) fn call(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    let head = &line[..line.len().min(HEAD_BYTES)];
    let name = b"\"tools/call\"";
    if !head.windows(name.len()).any(|part| part == name) {
        return None;
    }
    let CallLine { id, mut params, .. } = serde_json::from_slice(line).ok()?;
    let meta = params.meta.take();
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Some(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What both ways make of a line.
    fn both(line: &str) -> (Option<String>, Option<String>) {
        let theirs = serde_json::from_str::<ClientJsonRpcMessage>(line).ok();
        let shown = |message: ClientJsonRpcMessage| {
            format!("{message:?} {}", serde_json::to_string(&message).unwrap())
        };
        (call(line.as_bytes()).map(shown), theirs.map(shown))
    }

    #[test]
    fn a_call_is_what_the_protocols_own_types_make_of_it() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt","offset":-3,"limit":1.5}}}"#,
            r#"{"id":-7,"params":{"arguments":{},"name":"x"},"method":"tools/call","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":null,"_meta":{"progressToken":3,"own":[1,{"a":null}]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"name":"Edit","arguments":{"old_string":"\u00e4\n"},"inputResponses":{"permission":{"action":"accept"}},"requestState":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","more":1}}"#,
        ] {
            let (ours, theirs) = both(line);
            assert!(ours.is_some(), "{line}");
            assert_eq!(ours, theirs, "{line}");
        }
    }

    #[test]
    fn what_is_not_plainly_a_call_is_left_to_them() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":"{}"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"\"tools/call\""}}"#,
            "\"tools/call\"",
            "",
        ] {
            assert_eq!(both(line).0, None, "{line}");
        }
    }
}
