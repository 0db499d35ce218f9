//! Converts our types to those of the protocol.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, Implementation, MetaObject, Tool};
use serde_json::{Value, json};
use toolcrib::{Dialect, Error, Format, Picture, Reply, Runtime, to_json};

/// The number of characters of a result that a client should accept without truncating it.
const RESULT_CHARS: u64 = 200_000;

/// Tools with long results.
const LONG: [&str; 4] = ["Read", "Grep", "Bash", "BashOutput"];

/// How tools and results are presented.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Presentation {
    pub(crate) dialect: Dialect,
    /// Also returns results as objects, with their schemas.
    pub(crate) structured: bool,
}

/// The name that the Python library of the protocol sends for clients without a name of their own.
const UNNAMED_PYTHON_CLIENT: &str = "mcp";

/// Whether a client may take a field for required unless its schema has `nullable`, although `required` does not list
/// it. smolagents does.
pub(crate) fn needs_nullable_fields(client: Option<&Implementation>) -> bool {
    client.is_some_and(|client| client.name == UNNAMED_PYTHON_CLIENT)
}

/// Marks the optional fields of the arguments as `nullable`. A null is an omitted field for every tool.
pub(crate) fn with_nullable_fields(mut tool: Tool) -> Tool {
    let mut schema = (*tool.input_schema).clone();
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &String| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for (name, field) in fields {
            if let Value::Object(field) = field
                && !is_required(name)
            {
                field.insert("nullable".to_owned(), true.into());
            }
        }
    }
    tool.input_schema = Arc::new(schema);
    tool
}

/// The tools for `tools/list`, in the order of the table.
pub(crate) fn tools(
    runtime: &Runtime,
    presentation: Presentation,
) -> Result<Vec<Tool>, serde_json::Error> {
    let mut list: Value =
        serde_json::from_str(&runtime.catalogue(Format::Mcp, presentation.dialect))?;
    let tools = list["tools"].take();
    let Value::Array(tools) = tools else { return Ok(Vec::new()) };
    let shown = tools.into_iter().zip(runtime.tools()).map(|(mut shown, tool)| {
        if presentation.structured {
            shown["outputSchema"] = presentation.dialect.result_schema(tool.name);
        }
        serde_json::from_value(with_meta(shown, tool.name))
    });
    shown.collect()
}

/// Metadata that one common client supports: it always loads the tool, and does not truncate long results.
fn with_meta(mut shown: Value, tool: &str) -> Value {
    shown["_meta"] = json!({"anthropic/alwaysLoad": true});
    if LONG.contains(&tool) {
        shown["_meta"]["anthropic/maxResultSizeChars"] = RESULT_CHARS.into();
    }
    shown
}

/// A reply: its text first, then its images. Structured content only on request, since several clients show it
/// instead of the text. Metadata for programs also only on request, since some clients show it beside the text.
pub(crate) fn result(
    presentation: Presentation,
    metadata: bool,
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
    if presentation.structured {
        result.structured_content =
            tool.and_then(|tool| presentation.dialect.result(tool, outcome));
    }
    if metadata {
        let mut meta = MetaObject::default();
        for fact in ["metadata", "error"] {
            if let Some(value) = object.shift_remove(fact) {
                meta.insert(format!("toolcrib/{fact}"), value);
            }
        }
        result.meta = Some(meta);
    }
    result
}
