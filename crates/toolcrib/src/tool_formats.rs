//! Lists of tools for model APIs, and a Markdown page for people.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::metadata_fields::MetadataField;
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
    /// Description for the model. Names of tools and fields are in backticks.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub arguments: &'a Map<String, Value>,
    /// The metadata of its replies, in tables.
    pub metadata: &'static [&'static [MetadataField]],
}

impl Runtime {
    /// Every tool that the profile can allow, the built-in ones first.
    pub fn tools(&self) -> impl Iterator<Item = ToolInfo<'_>> {
        self.table().rows().iter().filter(|row| row.is_listed).map(info)
    }

    /// Whether a tool with exactly this name is among [`Runtime::tools`].
    pub fn lists(&self, tool: &str) -> bool {
        self.table().rows().iter().any(|row| row.is_listed && row.entry.name == tool)
    }

    /// Returns the tool with this name. Case and `_` are ignored; names of other dialects are accepted.
    pub fn tool_named(&self, name: &str) -> Option<ToolInfo<'_>> {
        self.table().find(name).ok().map(info)
    }

    /// Every tool's name and description in a dialect.
    pub fn tool_summaries(&self, dialect: Dialect) -> Vec<(String, String)> {
        let known = self.known_names();
        let summary = |tool: ToolInfo<'_>| {
            let description = dialect.description(tool.name, tool.description, &known);
            (dialect.tool_name(tool.name).into_owned(), description)
        };
        self.tools().map(summary).collect()
    }

    /// The names that descriptions may mention.
    fn known_names(&self) -> HashSet<&str> {
        self.tools().flat_map(names).collect()
    }

    /// Returns the list of tools in a format, with the names of a dialect. The result is JSON, except for
    /// [`Format::Markdown`].
    pub fn catalogue(&self, format: Format, dialect: Dialect) -> String {
        let known = self.known_names();
        let list = |entry: fn(ToolInfo<'_>) -> Value| {
            let shown = |tool: ToolInfo<'_>| {
                let name = dialect.tool_name(tool.name);
                let description = dialect.description(tool.name, tool.description, &known);
                let arguments = dialect.arguments(tool.name, tool.arguments, &known);
                let shown = ToolInfo {
                    name: &name,
                    description: &description,
                    arguments: &arguments,
                    ..tool
                };
                let mut entry = entry(shown);
                if format == Format::Mcp && dialect.is_structured() {
                    entry["outputSchema"] = dialect.result_schema(tool.name);
                }
                entry
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

/// The name of a tool and those of its fields.
fn names(tool: ToolInfo<'_>) -> Vec<&str> {
    let mut names = vec![tool.name];
    let mut schemas = vec![tool.arguments];
    while let Some(schema) = schemas.pop() {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            names.push(name);
            schemas.extend(property.get("items").and_then(Value::as_object));
        }
    }
    names
}

fn info(row: &Row) -> ToolInfo<'_> {
    let schema = row.schema();
    ToolInfo {
        name: row.entry.name,
        category: row.entry.category,
        hints: row.entry.hints,
        description: &schema.description,
        arguments: &schema.arguments,
        metadata: row.entry.metadata,
    }
}

fn mcp(tool: ToolInfo<'_>) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": lean(tool.arguments),
        "annotations": annotations(tool.hints),
    })
}

/// Whether a value is the first of those that a schema lists.
fn is_first_choice(schema: &Map<String, Value>, value: &Value) -> bool {
    let choices = schema.get("enum").and_then(Value::as_array);
    choices.is_some_and(|choices| choices.first() == Some(value))
}

/// The hints of a tool, except those that equal the defaults of MCP or mean nothing for a tool that only reads.
fn annotations(hints: Hints) -> Value {
    let given = [
        ("readOnlyHint", hints.read_only, false),
        ("destructiveHint", hints.destructive || hints.read_only, true),
        ("idempotentHint", hints.idempotent && !hints.read_only, false),
        ("openWorldHint", hints.open_world, true),
    ];
    let differing = given.into_iter().filter(|(_, hint, default)| hint != default);
    differing.map(|(name, hint, _)| (name.to_owned(), Value::from(hint))).collect()
}

/// Removes bounds, `additionalProperties`, defaults that a model expects (false, 0, the first choice), and descriptions
/// of the fields of objects in arrays. They cost tokens in every conversation, and a model does not need them: a call
/// that violates them gets an error with the nearest field or the bound.
fn lean(schema: &Map<String, Value>) -> Value {
    leaner(schema, 0)
}

/// The same at a depth of arrays.
fn leaner(schema: &Map<String, Value>, depth: usize) -> Value {
    let inner = |value: &Value, depth: usize| match value {
        Value::Object(schema) => leaner(schema, depth),
        other => other.clone(),
    };
    let mut lean = Map::new();
    for (keyword, value) in schema {
        let value = match (keyword.as_str(), value) {
            ("minimum" | "maximum" | "minItems" | "additionalProperties", _) => continue,
            ("default", Value::Bool(false)) => continue,
            ("default", value) if *value == 0 || is_first_choice(schema, value) => continue,
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), inner(schema, depth)))
                .collect(),
            ("items", items) => inner(items, depth + 1),
            ("description", _) if depth > 0 => continue,
            ("description", Value::String(text)) => text.trim_end_matches('.').into(),
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

Generated from the doc comments of the tools by `cargo xtask docs`; do not edit. For every tool: case and
`_` in names and fields are ignored. Numbers and booleans may be strings; values in `env` may be integers and
booleans. A null is an omitted field. An unknown field is an error that names the nearest one.
[replies.md](replies.md) describes the metadata of the replies.
";

fn markdown(mut page: String, tool: ToolInfo<'_>) -> String {
    let hints = [
        (tool.hints.read_only, "read-only"),
        (tool.hints.destructive, "may overwrite"),
        (tool.hints.idempotent, "idempotent"),
        (tool.hints.open_world, "open world"),
    ];
    let hints = hints.into_iter().filter_map(|(holds, words)| holds.then_some(words));
    let facts: Vec<&str> = std::iter::once(tool.category.name()).chain(hints).collect();
    let _ =
        write!(page, "\n## {}\n\n*{}*\n\n{}\n\n", tool.name, facts.join(" · "), tool.description);
    page += "| field | type | default | |\n| --- | --- | --- | --- |\n";
    fields(&mut page, "", tool.arguments);
    page
}

/// A row for each field of a schema, and for the fields of the objects in its arrays.
fn fields(page: &mut String, prefix: &str, schema: &Map<String, Value>) {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|n| n == name));
        let default = match property.get("default") {
            _ if is_required => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ =
            writeln!(page, "| `{prefix}{name}` | {} | {default} | {text} |", type_words(property));
        if let Some(item) = property.get("items").and_then(Value::as_object) {
            fields(page, &format!("{prefix}{name}[]."), item);
        }
    }
}

/// The type of a field with its bounds: `integer 1–1000`, `"lf", "crlf" or "cr"`, `array of object, at least 1`.
fn type_words(property: &Value) -> String {
    let word = |key: &str| property.get(key).and_then(Value::as_str);
    if let Some(Value::Array(choices)) = property.get("enum") {
        let choices: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
        return choices.join(" or ");
    }
    let kind = word("type").unwrap_or("any");
    let bounds = match (property.get("minimum"), property.get("maximum")) {
        (Some(min), Some(max)) => format!(" {min}–{max}"),
        (Some(min), None) => format!(" from {min}"),
        (None, Some(max)) => format!(" to {max}"),
        (None, None) => String::new(),
    };
    let items = property.get("items").and_then(|items| items["type"].as_str());
    let items = items.map_or(String::new(), |items| format!(" of {items}"));
    let least =
        property.get("minItems").map_or(String::new(), |least| format!(", at least {least}"));
    format!("{kind}{items}{bounds}{least}")
}
