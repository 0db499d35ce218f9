//! Our words in the protocol's.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Tool};
use serde_json::{Value, json};
use toolcrib::{Dialect, Error, Format, Picture, Reply, Runtime, to_json};

/// Characters of a result that a client should take without cutting it, for those that ask.
const RESULT_CHARS: u64 = 200_000;

/// The tools whose results can be long.
const LONG: [&str; 4] = ["Read", "Grep", "Bash", "BashOutput"];

/// How tools are shown and answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    pub(crate) dialect: Dialect,
    /// Results also as objects, with their schemas.
    pub(crate) structured: bool,
}

/// The tools as `tools/list` has them, in the order of the table.
pub(crate) fn tools(runtime: &Runtime, manner: Manner) -> Result<Vec<Tool>, serde_json::Error> {
    let mut list: Value = serde_json::from_str(&runtime.catalogue(Format::Mcp, manner.dialect))?;
    let tools = list["tools"].take();
    let Value::Array(tools) = tools else { return Ok(Vec::new()) };
    let shown = tools.into_iter().zip(runtime.tools()).map(|(mut shown, tool)| {
        if manner.structured {
            shown["outputSchema"] = manner.dialect.result_schema(tool.name);
        }
        serde_json::from_value(with_meta(shown, tool.name))
    });
    shown.collect()
}

/// What one common client honours: never to hide the tool behind a search, and not to cut its results, where
/// they can be long.
fn with_meta(mut shown: Value, tool: &str) -> Value {
    shown["_meta"] = json!({"anthropic/alwaysLoad": true});
    if LONG.contains(&tool) {
        shown["_meta"]["anthropic/maxResultSizeChars"] = RESULT_CHARS.into();
    }
    shown
}

/// A reply: its text first, then its pictures; nothing structured unless it is wanted, since several clients
/// would show that instead of the text. Facts for programs are where no model is shown them.
pub(crate) fn result(
    manner: Manner,
    tool: Option<&str>,
    outcome: &Result<Reply, Error>,
) -> CallToolResult {
    let mut object = to_json(outcome);
    let text = match object.shift_remove("output") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let mut content = vec![ContentBlock::text(text)];
    if let Ok(reply) = outcome {
        let image = |picture: &Picture| ContentBlock::image(picture.base64(), picture.media_type);
        content.extend(reply.pictures().iter().map(image));
    }
    let mut result = match outcome {
        Ok(_) => CallToolResult::success(content),
        Err(_) => CallToolResult::error(content),
    };
    if manner.structured {
        result.structured_content = tool.and_then(|tool| manner.dialect.result(tool, outcome));
    }
    let mut meta = MetaObject::default();
    for fact in ["metadata", "error"] {
        if let Some(value) = object.shift_remove(fact) {
            meta.insert(format!("toolcrib/{fact}"), value);
        }
    }
    result.meta = Some(meta);
    result
}
