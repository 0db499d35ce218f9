//! The scopes that a message needs, from its body.

use std::borrow::Cow;

use rmcp::model::{CallToolRequestMethod, ConstString as _};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::scope::Scope;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
    result: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(rename = "inputResponses")]
    input_responses: Option<IgnoredAny>,
}

/// The scopes for a message. `scope_of` knows those of tools.
///
/// A message that cannot be read here has none: the protocol refuses it, and the handler checks each call again.
pub(super) fn required_scopes(body: &[u8], scope_of: impl Fn(&str) -> Scope) -> Vec<Scope> {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else { return Vec::new() };
    match (message.method.as_deref(), message.params) {
        (
            Some(CallToolRequestMethod::VALUE),
            Some(Params { name: Some(tool), input_responses }),
        ) => {
            let answers = input_responses.map(|_| Scope::Approve);
            std::iter::once(scope_of(&tool)).chain(answers).collect()
        }
        // The answer to a question: the server asks a client nothing else.
        (None, _) if message.result.is_some() => vec![Scope::Approve],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Vec<Scope> {
        let scope_of = |tool: &str| if tool == "Bash" { Scope::Exec } else { Scope::Read };
        required_scopes(body.as_bytes(), scope_of)
    }

    #[test]
    fn calls_and_answers_need_scopes() {
        for (body, expected) in [
            (r#"{"method": "tools/call", "params": {"name": "Bash"}}"#, &[Scope::Exec][..]),
            (r#"{"params": {"name": "Read", "x": [1]}, "method": "tools/call"}"#, &[Scope::Read]),
            (r#"{"method": "tools\/call", "params": {"name": "B\u0061sh"}}"#, &[Scope::Exec]),
            (
                r#"{"method": "tools/call", "params": {"name": "Bash", "inputResponses": {}}}"#,
                &[Scope::Exec, Scope::Approve],
            ),
            (r#"{"id": 1, "result": {"action": "accept"}}"#, &[Scope::Approve]),
            (r#"{"method": "tools/list"}"#, &[]),
            (r#"{"method": "initialize", "params": {"x": 1}}"#, &[]),
            (r#"{"method": "tools/call", "params": {"name": 5}}"#, &[]),
            (r#"[{"method": "tools/call"}]"#, &[]),
            ("", &[]),
        ] {
            assert_eq!(of(body), expected, "{body}");
        }
    }
}
