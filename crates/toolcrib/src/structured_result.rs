//! Structured results, with the field names of a dialect.

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::error::Error;
use crate::reply::Reply;
use crate::reply_json::to_json;

/// The parts of a tool's results, each with its source. A tool that is not listed has `output` and `metadata`.
struct Shape {
    tool: &'static str,
    parts: &'static [(&'static str, Source)],
}

/// The source of a part of a result.
enum Source {
    Success,
    Text,
    Diff,
    /// A field of the metadata, and its type.
    Field(&'static str, &'static str),
    /// The replacements of each edit, one object for each.
    Edits,
    Group(&'static [(&'static str, Source)]),
}

use Source::{Diff, Edits, Field, Group, Success, Text};

const CAMEL: &[Shape] = &[
    Shape {
        tool: "Read",
        parts: &[
            ("content", Text),
            (
                "metadata",
                Group(&[
                    ("truncated", Field("truncated", "boolean")),
                    ("lineCount", Field("lines_read", "number")),
                    ("filePath", Field("file_path", "string")),
                ]),
            ),
        ],
    },
    Shape {
        tool: "Write",
        parts: &[
            ("success", Success),
            ("filePath", Field("file_path", "string")),
            ("diff", Diff),
            ("created", Field("created", "boolean")),
        ],
    },
    Shape {
        tool: "Edit",
        parts: &[
            ("success", Success),
            ("filePath", Field("file_path", "string")),
            ("replacements", Field("replacements", "number")),
        ],
    },
    Shape {
        tool: "MultiEdit",
        parts: &[
            ("success", Success),
            ("filePath", Field("file_path", "string")),
            ("totalReplacements", Field("total_replacements", "number")),
            ("results", Edits),
        ],
    },
    Shape {
        tool: "ApplyPatch",
        parts: &[
            ("success", Success),
            ("filesModified", Field("files_modified", "number")),
            ("files", Field("files", "array")),
        ],
    },
    Shape {
        tool: "LS",
        parts: &[("entries", Field("entries", "array")), ("count", Field("count", "number"))],
    },
    Shape {
        tool: "Glob",
        parts: &[
            ("files", Field("files", "array")),
            ("count", Field("count", "number")),
            ("pattern", Field("pattern", "string")),
        ],
    },
];

impl Dialect {
    /// The schema of a tool's results as objects.
    pub fn result_schema(self, tool: &str) -> Value {
        match self.parts(tool) {
            Some(parts) => schema_of(parts),
            None => json!({
                "type": "object",
                "properties": {"output": {"type": "string"}, "metadata": {"type": "object"}},
                "required": ["output", "metadata"],
            }),
        }
    }

    /// The outcome of a call as an object; nothing for a call that failed: its error is the answer.
    pub fn result(self, tool: &str, outcome: &Result<Reply, Error>) -> Option<Value> {
        let reply = outcome.as_ref().ok()?;
        Some(match self.parts(tool) {
            Some(parts) => object_of(parts, reply),
            None => {
                let field = |(name, value): (&String, &Value)| {
                    (self.field_name(tool, name).into_owned(), self.with_keys(value))
                };
                let metadata: Map<String, Value> = reply.metadata().iter().map(field).collect();
                json!({"output": reply.text(), "metadata": metadata})
            }
        })
    }

    /// The reply to a call as one JSON object, as programs read it. Where the dialect has results as objects,
    /// `result` is that object.
    pub fn reply_json(self, tool: &str, outcome: &Result<Reply, Error>) -> Map<String, Value> {
        let mut object = to_json(outcome);
        if self.is_structured() {
            object.extend(self.result(tool, outcome).map(|result| ("result".to_owned(), result)));
        }
        object
    }

    fn parts(self, tool: &str) -> Option<&'static [(&'static str, Source)]> {
        let shapes = if self == Dialect::Camel { CAMEL } else { &[] };
        shapes.iter().find(|shape| shape.tool == tool).map(|shape| shape.parts)
    }

    /// A value with the keys of its objects in the dialect.
    fn with_keys(self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (self.key(key).into_owned(), self.with_keys(value)))
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.with_keys(item)).collect(),
            other => other.clone(),
        }
    }
}

fn schema_of(parts: &[(&str, Source)]) -> Value {
    let mut properties = Map::new();
    for (name, source) in parts {
        let schema = match source {
            Success => json!({"type": "boolean"}),
            Text | Diff => json!({"type": "string"}),
            Field(_, kind) => json!({"type": kind}),
            Edits => json!({"type": "array", "items": {
                "type": "object",
                "properties": {"filePath": {"type": "string"}, "replacements": {"type": "number"}},
                "required": ["replacements"],
            }}),
            Group(parts) => schema_of(parts),
        };
        properties.insert((*name).to_owned(), schema);
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn object_of(parts: &[(&str, Source)], reply: &Reply) -> Value {
    let value = |source: &Source| match source {
        Success => true.into(),
        Text => with_arrows(&reply.text()).into(),
        Diff => reply.full_diff_text().into(),
        Field(key, kind) => match reply.metadata().get(*key) {
            Some(value) => Dialect::Camel.with_keys(value),
            None => nothing(kind),
        },
        Edits => edits(reply),
        Group(parts) => object_of(parts, reply),
    };
    parts.iter().map(|(name, source)| ((*name).to_owned(), value(source))).collect()
}

/// The edits of all files in one list.
fn edits(reply: &Reply) -> Value {
    let files = reply.metadata().get("results").and_then(Value::as_array);
    let of_file = |file: &Value| -> Vec<Value> {
        let counts = file["replacements"].as_array().cloned().unwrap_or_default();
        let edit = |count| json!({"filePath": file["file_path"], "replacements": count});
        counts.into_iter().map(edit).collect()
    };
    files.into_iter().flatten().flat_map(of_file).collect()
}

/// The value of a part that a reply does not have: the schema requires one.
fn nothing(kind: &str) -> Value {
    match kind {
        "boolean" => false.into(),
        "number" => 0.into(),
        "array" => json!([]),
        _ => "".into(),
    }
}

/// Line numbers end with an arrow instead of a tab.
fn with_arrows(text: &str) -> String {
    let arrow = |line: &str| match line.split_once('\t') {
        Some((number, rest)) if number.trim_start().parse::<u64>().is_ok() => {
            format!("{number}→{rest}")
        }
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(arrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_what_its_schema_says() {
        let reply = Reply::new("     1\ta\tb\n[end]\n")
            .with("file_path", "x")
            .with("lines_read", 1)
            .with("truncated", false);
        let result = Dialect::Camel.result("Read", &Ok(reply)).unwrap();
        let metadata = json!({"truncated": false, "lineCount": 1, "filePath": "x"});
        assert_eq!(result, json!({"content": "     1→a\tb\n[end]\n", "metadata": metadata}));
        let schema = Dialect::Camel.result_schema("Read");
        assert_eq!(schema["properties"]["metadata"]["required"][1], "lineCount");
        assert_eq!(schema["required"], json!(["content", "metadata"]));
        let failed = Err(Error::invalid("no"));
        assert!(Dialect::Camel.result("Read", &failed).is_none());
    }

    #[test]
    fn every_edit_has_its_own_number_of_replacements() {
        let files =
            json!([{"file_path": "a", "replacements": [1, 2], "matched": ["exact", "exact"]}]);
        let reply = Reply::new("").with("file_path", "a").with("results", files);
        let result = Dialect::Camel.result("MultiEdit", &Ok(reply)).unwrap();
        assert_eq!(result["filePath"], "a");
        assert_eq!(
            result["results"],
            json!([{"filePath": "a", "replacements": 1}, {"filePath": "a", "replacements": 2}])
        );
    }

    #[test]
    fn metadata_without_a_shape_has_the_names_of_the_dialect() {
        let reply = Reply::new("x").with("cwd", ".").with("files_changed", json!({"not_kept": 0}));
        let camel = Dialect::Camel.result("Bash", &Ok(reply.clone())).unwrap();
        assert_eq!(camel["metadata"], json!({"cwd": ".", "filesChanged": {"notKept": 0}}));
        let codex = Dialect::Codex.result("Bash", &Ok(reply)).unwrap();
        assert_eq!(codex["metadata"], json!({"workdir": ".", "files_changed": {"not_kept": 0}}));
    }
}
