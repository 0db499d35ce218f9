//! Lists of tools for model APIs, and a Markdown page for people.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::runtime::Runtime;
use crate::tool::{Category, Hints};
use crate::tool_table::Row;

/// Format of a tool list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The result of MCP's `tools/list`.
    Mcp,
    /// `tools` of OpenAI's chat completions and compatible APIs.
    OpenAi,
    /// `tools` of Anthropic's messages.
    Anthropic,
    /// `tools` of Gemini's `generateContent`.
    Gemini,
    /// A Markdown page for people.
    Markdown,
}

/// A tool in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ToolInfo<'a> {
    /// Name.
    pub name: &'a str,
    /// Category.
    pub category: Category,
    /// Behaviour hints.
    pub hints: Hints,
    /// Description for the model.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub arguments: &'a Map<String, Value>,
}

impl Runtime {
    /// Every tool that the profile can allow, the built-in ones first.
    pub fn tools(&self) -> impl Iterator<Item = ToolInfo<'_>> {
        self.table().rows().iter().filter(|row| row.is_listed).map(info)
    }

    /// Returns the tool with this name. Case and `_` are ignored; names of other dialects are accepted.
    pub fn tool_named(&self, name: &str) -> Option<ToolInfo<'_>> {
        self.table().find(name).ok().map(info)
    }

    /// Returns the list of tools in a format, with the names of a dialect. The result is JSON, except for
    /// [`Format::Markdown`].
    pub fn catalogue(&self, format: Format, dialect: Dialect) -> String {
        let list = |entry: fn(ToolInfo<'_>) -> Value| {
            let shown = |tool: ToolInfo<'_>| {
                let name = dialect.tool(tool.name);
                let arguments = dialect.arguments(tool.name, tool.arguments);
                entry(ToolInfo { name: &name, arguments: &arguments, ..tool })
            };
            Value::Array(self.tools().map(shown).collect())
        };
        match format {
            Format::Mcp => json!({"tools": list(mcp)}).to_string(),
            Format::OpenAi => list(openai).to_string(),
            Format::Anthropic => list(anthropic).to_string(),
            Format::Gemini => json!([{"functionDeclarations": list(gemini)}]).to_string(),
            Format::Markdown => self.tools().fold(MARKDOWN_TOP.to_owned(), markdown),
        }
    }
}

fn info(row: &Row) -> ToolInfo<'_> {
    let schema = row.schema();
    ToolInfo {
        name: row.entry.name,
        category: row.entry.category,
        hints: row.entry.hints,
        description: &schema.description,
        arguments: &schema.arguments,
    }
}

fn mcp(tool: ToolInfo<'_>) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": lean(tool.arguments),
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
    })
}

/// Removes bounds and `additionalProperties`, which cost tokens in every conversation and which a model does
/// not need. A call that violates them gets an error with the nearest field or the bound.
fn lean(schema: &Map<String, Value>) -> Value {
    let inner = |value: &Value| match value {
        Value::Object(schema) => lean(schema),
        other => other.clone(),
    };
    let mut lean = Map::new();
    for (keyword, value) in schema {
        let value = match (keyword.as_str(), value) {
            ("minimum" | "maximum" | "additionalProperties", _) => continue,
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), inner(schema))).collect()
            }
            ("items", items) => inner(items),
            (_, other) => other.clone(),
        };
        lean.insert(keyword.clone(), value);
    }
    lean.into()
}

fn openai(tool: ToolInfo<'_>) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.arguments,
        },
    })
}

fn anthropic(tool: ToolInfo<'_>) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.arguments,
    })
}

fn gemini(tool: ToolInfo<'_>) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": openapi(&Value::Object(tool.arguments.clone())),
    })
}

/// Converts a schema to Gemini's subset of OpenAPI, with its type names.
fn openapi(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let mut subset = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            ("type", Value::String(name)) => name.to_uppercase().into(),
            ("properties", Value::Object(properties)) => {
                // Gemini requires named properties: a map such as `env` cannot be described.
                let is_map = |schema: &Value| {
                    schema["type"] == "object" && schema.get("properties").is_none()
                };
                let described = properties.iter().filter(|(_, schema)| !is_map(schema));
                described.map(|(name, schema)| (name.clone(), openapi(schema))).collect()
            }
            ("items", items) => openapi(items),
            (
                "description" | "required" | "enum" | "minimum" | "maximum" | "minItems"
                | "maxItems" | "minLength" | "maxLength" | "pattern" | "default",
                value,
            ) => value.clone(),
            _ => continue,
        };
        subset.insert(keyword.clone(), value);
    }
    subset.into()
}

const MARKDOWN_TOP: &str = "# The tools

Generated from the doc comments of the tools by `cargo xtask docs`; do not edit. What holds for every
tool: names and fields are accepted without regard to case and `_`, numbers and flags also as strings,
null for what is left out; an unknown field is an error that names the nearest one.
";

fn markdown(mut page: String, tool: ToolInfo<'_>) -> String {
    let hints = [
        (tool.hints.read_only, "read-only"),
        (tool.hints.destructive, "may overwrite"),
        (tool.hints.idempotent, "twice is once"),
        (tool.hints.open_world, "reaches outside"),
    ];
    let hints = hints.into_iter().filter_map(|(holds, words)| holds.then_some(words));
    let facts: Vec<&str> = std::iter::once(tool.category.name()).chain(hints).collect();
    let _ =
        write!(page, "\n## {}\n\n*{}*\n\n{}\n\n", tool.name, facts.join(" · "), tool.description);
    page += "| field | type | |\n| --- | --- | --- |\n";
    let required = tool.arguments.get("required").and_then(Value::as_array);
    let properties = tool.arguments.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let needed = required.is_some_and(|names| names.iter().any(|n| n == name));
        let words = |key: &str| property.get(key).and_then(Value::as_str).unwrap_or_default();
        let optional = if needed { "" } else { ", optional" };
        let range = match (property.get("minimum"), property.get("maximum")) {
            (Some(min), Some(max)) => format!(" {min}–{max}"),
            (Some(min), None) => format!(" from {min}"),
            (None, Some(max)) => format!(" to {max}"),
            (None, None) => String::new(),
        };
        let description = words("description").replace('\n', " ");
        let _ = writeln!(page, "| `{name}` | {}{range}{optional} | {description} |", words("type"));
    }
    page
}
