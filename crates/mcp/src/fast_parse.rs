//! A fast path for parsing tool calls. The protocol's own types try a dozen kinds of messages before this one,
//! which is nearly always the right one.

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage,
    ClientRequest, JsonRpcVersion2_0, RequestId,
};
use serde::Deserialize;

/// Clients send the method within this number of bytes.
const HEAD_BYTES: usize = 256;

/// A call without further fields.
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

/// Parses a line as a call, with the same result as the protocol's own types. `None` if the line is anything else;
/// the protocol's types then parse it.
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

    /// The results of parse_both_ways parsers.
    fn parse_both_ways(line: &str) -> (Option<String>, Option<String>) {
        let theirs = serde_json::from_str::<ClientJsonRpcMessage>(line).ok();
        let shown = |message: ClientJsonRpcMessage| {
            format!("{message:?} {}", serde_json::to_string(&message).unwrap())
        };
        (call(line.as_bytes()).map(shown), theirs.map(shown))
    }

    #[test]
    fn calls_parse_as_with_the_protocols_types() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read"}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt","offset":-3,"limit":1.5}}}"#,
            r#"{"id":-7,"params":{"arguments":{},"name":"x"},"method":"tools/call","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":null,"_meta":{"progressToken":3,"own":[1,{"a":null}]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"name":"Edit","arguments":{"old_string":"\u00e4\n"},"inputResponses":{"permission":{"action":"accept"}},"requestState":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","more":1}}"#,
        ] {
            let (ours, theirs) = parse_both_ways(line);
            assert!(ours.is_some(), "{line}");
            assert_eq!(ours, theirs, "{line}");
        }
    }

    #[test]
    fn other_lines_are_left_to_the_protocols_types() {
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
            assert_eq!(parse_both_ways(line).0, None, "{line}");
        }
    }
}
