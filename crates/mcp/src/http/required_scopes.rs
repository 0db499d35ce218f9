//! The scopes that a message needs, from its body.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest};

use crate::scope::Scope;

/// The scopes for a message. `scope_of` knows those of tools.
///
/// The body is read as the protocol reads it, with the same type: another reader could see another message in it. A body that
/// is no message needs no scope, since the protocol refuses it.
pub(super) fn required_scopes(body: &[u8], scope_of: impl Fn(&str) -> Scope) -> Vec<Scope> {
    match serde_json::from_slice::<ClientJsonRpcMessage>(body) {
        Ok(ClientJsonRpcMessage::Request(message)) => match message.request {
            ClientRequest::CallToolRequest(call) => {
                let answers = call.params.input_responses.map(|_| Scope::Approve);
                std::iter::once(scope_of(&call.params.name)).chain(answers).collect()
            }
            _ => Vec::new(),
        },
        // The answer to a question: the server asks a client nothing else.
        Ok(ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_)) => {
            vec![Scope::Approve]
        }
        Ok(ClientJsonRpcMessage::Notification(_)) | Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(body: &str) -> Vec<Scope> {
        let scope_of = |tool: &str| if tool == "Bash" { Scope::Exec } else { Scope::Read };
        required_scopes(body.as_bytes(), scope_of)
    }

    #[test]
    fn calls_and_answers_need_scopes() {
        for (rest, expected) in [
            (r#""id": 1, "method": "tools/call", "params": {"name": "Bash"}"#, &[Scope::Exec][..]),
            (
                r#""params": {"name": "Read", "x": [1]}, "method": "tools/call", "id": "a""#,
                &[Scope::Read],
            ),
            (
                r#""id": 1, "method": "tools\/call", "params": {"name": "B\u0061sh"}"#,
                &[Scope::Exec],
            ),
            (
                r#""id": 1, "method": "tools/call", "params": {"name": "Bash", "inputResponses": {}}"#,
                &[Scope::Exec, Scope::Approve],
            ),
            (r#""id": 1, "result": {"action": "accept"}"#, &[Scope::Approve]),
            (r#""id": 1, "error": {"code": 1, "message": "no"}"#, &[Scope::Approve]),
            (r#""id": 1, "method": "tools/list""#, &[]),
            (r#""id": 1, "method": "tools/call", "params": {"name": 5}"#, &[]),
            (r#""method": "notifications/initialized""#, &[]),
        ] {
            let body = format!("{{\"jsonrpc\": \"2.0\", {rest}}}");
            assert_eq!(of(&body), expected, "{body}");
        }
        for body in ["", "[]", "5", r#"[{"method": "tools/call", "params": {"name": "Bash"}}]"#] {
            assert_eq!(of(body), [], "{body}");
        }
    }

    /// Whatever else is in a message: if the protocol takes it as an answer or as a call, it needs the scope.
    #[test]
    fn other_members_do_not_hide_a_message() {
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"answer": "once"}}});
        let call =
            json!({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"name": "Bash"}});
        let values = [
            json!(5),
            json!(null),
            json!([]),
            json!({"name": 5}),
            json!({"name": "Read"}),
            json!("x"),
        ];
        let names =
            ["params", "method", "result", "error", "id", "x", "name", "inputResponses", "_meta"];
        for (message, needed) in [(answer, Scope::Approve), (call, Scope::Exec)] {
            assert_eq!(of(&message.to_string()), [needed]);
            for (name, value) in
                names.iter().flat_map(|name| values.iter().map(move |value| (name, value)))
            {
                let Value::Object(mut changed) = message.clone() else { panic!() };
                // Another member of the same name would replace the one that makes it this message.
                if changed.contains_key(*name) {
                    continue;
                }
                changed.insert((*name).to_owned(), value.clone());
                let body = Value::Object(changed).to_string();
                let is_message = serde_json::from_str::<ClientJsonRpcMessage>(&body).is_ok();
                assert_eq!(of(&body), Vec::from_iter(is_message.then_some(needed)), "{body}");
            }
        }
        let hidden = r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"answer":"once"}},"params":5}"#;
        assert_eq!(of(hidden), [Scope::Approve]);
    }
}
