//! Presets of tool and field names, for models that were trained on other names.
//!
//! A dialect changes only the listing and the results. Calls are accepted with the names of all dialects: tool
//! names without regard to case and `_`, fields in snake_case and camelCase, and every alias.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::reply::Reply;
use crate::reply_json::to_json;

/// Preset of tool and field names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `Read{file_path}`, which most models know.
    #[default]
    Toolcrib,
    /// `read{filePath}`, with structured results.
    Camel,
    /// `shell{command, workdir}` and `apply_patch{input}`, which Codex models know.
    Codex,
}

/// Exceptions of a dialect for one tool: its name, renamed fields, and the fields of its results. Empty
/// `result` means the fields that all tools have.
struct Words {
    tool: &'static str,
    shown: &'static str,
    fields: &'static [(&'static str, &'static str)],
    result: &'static [(&'static str, Source)],
}

/// Source of a result field.
enum Source {
    Success,
    Text,
    Diff,
    /// A metadata field of the reply, and its JSON type.
    Fact(&'static str, &'static str),
    Group(&'static [(&'static str, Source)]),
}

use Source::{Diff, Fact, Group, Success, Text};

const CAMEL: &[Words] = &[
    Words {
        tool: "Read",
        shown: "read",
        fields: &[],
        result: &[
            ("content", Text),
            (
                "metadata",
                Group(&[
                    ("truncated", Fact("truncated", "boolean")),
                    ("lineCount", Fact("lines_read", "number")),
                    ("filePath", Fact("file_path", "string")),
                ]),
            ),
        ],
    },
    Words {
        tool: "Write",
        shown: "write",
        fields: &[],
        result: &[
            ("success", Success),
            ("filePath", Fact("file_path", "string")),
            ("diff", Diff),
            ("created", Fact("created", "boolean")),
        ],
    },
    Words {
        tool: "Edit",
        shown: "edit",
        fields: &[],
        result: &[
            ("success", Success),
            ("filePath", Fact("file_path", "string")),
            ("replacements", Fact("replacements", "number")),
        ],
    },
    Words {
        tool: "MultiEdit",
        shown: "multiedit",
        fields: &[],
        result: &[
            ("success", Success),
            ("filePath", Fact("file_path", "string")),
            ("totalReplacements", Fact("total_replacements", "number")),
            ("results", Fact("results", "array")),
        ],
    },
    Words {
        tool: "ApplyPatch",
        shown: "apply_patch",
        fields: &[("patch", "patchText")],
        result: &[
            ("success", Success),
            ("filesModified", Fact("files_modified", "number")),
            ("files", Fact("files", "array")),
        ],
    },
    Words {
        tool: "LS",
        shown: "ls",
        fields: &[("path", "dirPath")],
        result: &[("entries", Fact("entries", "array")), ("count", Fact("count", "number"))],
    },
    Words {
        tool: "Glob",
        shown: "glob",
        fields: &[],
        result: &[
            ("files", Fact("files", "array")),
            ("count", Fact("count", "number")),
            ("pattern", Fact("pattern", "string")),
        ],
    },
];

const CODEX: &[Words] = &[
    Words {
        tool: "Bash",
        shown: "shell",
        fields: &[("cwd", "workdir"), ("timeout", "timeout_ms")],
        result: &[],
    },
    Words { tool: "ApplyPatch", shown: "apply_patch", fields: &[("patch", "input")], result: &[] },
    Words { tool: "Read", shown: "read_file", fields: &[], result: &[] },
    Words { tool: "LS", shown: "list_dir", fields: &[("path", "dir_path")], result: &[] },
];

/// Aliases that do not follow from a rule. Accepted in every dialect.
const OTHER_NAMES: [(&str, &str); 4] =
    [("shell", "Bash"), ("read_file", "Read"), ("view_image", "Read"), ("list_dir", "LS")];

/// The tool with this alias.
pub(crate) fn other_name(name: &str) -> Option<&'static str> {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, tool)| *tool)
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 3] = [Dialect::Toolcrib, Dialect::Camel, Dialect::Codex];

    /// Returns the name, as in `--dialect`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Toolcrib => "toolcrib",
            Dialect::Camel => "camel",
            Dialect::Codex => "codex",
        }
    }

    /// Returns whether results are structured objects.
    pub fn is_structured(self) -> bool {
        self == Dialect::Camel
    }

    /// Name of a tool.
    pub(crate) fn tool<'a>(self, tool: &'a str) -> Cow<'a, str> {
        match (self, self.words(tool)) {
            (Dialect::Toolcrib, _) => tool.into(),
            (_, Some(words)) => words.shown.into(),
            (_, None) => snake(tool).into(),
        }
    }

    /// Schema of a tool's arguments.
    pub(crate) fn arguments<'a>(
        self,
        tool: &str,
        schema: &'a Map<String, Value>,
    ) -> Cow<'a, Map<String, Value>> {
        let fields = self.words(tool).map_or(&[][..], |words| words.fields);
        match self {
            Dialect::Toolcrib => Cow::Borrowed(schema),
            Dialect::Camel => Cow::Owned(renamed(schema, fields, camel)),
            Dialect::Codex => Cow::Owned(renamed(schema, fields, str::to_owned)),
        }
    }

    /// Returns the schema of a tool's structured results.
    pub fn result_schema(self, tool: &str) -> Value {
        match self.words(tool).filter(|words| !words.result.is_empty()) {
            Some(words) => schema_of(words.result),
            None => json!({
                "type": "object",
                "properties": {"output": {"type": "string"}, "metadata": {"type": "object"}},
                "required": ["output", "metadata"],
            }),
        }
    }

    /// Returns the structured result of a call. `None` if the call failed: then the error text is the result.
    pub fn result(self, tool: &str, outcome: &Result<Reply, Error>) -> Option<Value> {
        let reply = outcome.as_ref().ok()?;
        match self.words(tool).filter(|words| !words.result.is_empty()) {
            Some(words) => Some(object_of(words.result, reply)),
            None => {
                let mut object = to_json(outcome);
                object.retain(|key, _| key == "output" || key == "metadata");
                Some(object.into())
            }
        }
    }

    fn words(self, tool: &str) -> Option<&'static Words> {
        let all = match self {
            Dialect::Toolcrib => &[],
            Dialect::Camel => CAMEL,
            Dialect::Codex => CODEX,
        };
        all.iter().find(|words| words.tool == tool)
    }
}

fn schema_of(parts: &[(&str, Source)]) -> Value {
    let mut properties = Map::new();
    for (name, source) in parts {
        let schema = match source {
            Success => json!({"type": "boolean"}),
            Text | Diff => json!({"type": "string"}),
            Fact(_, kind) => json!({"type": kind}),
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
        Fact(key, kind) => camel_keys(reply.metadata().get(*key)).unwrap_or_else(|| nothing(kind)),
        Group(parts) => object_of(parts, reply),
    };
    parts.iter().map(|(name, source)| ((*name).to_owned(), value(source))).collect()
}

/// Default for a metadata field that a reply does not have, since the schema requires it.
fn nothing(kind: &str) -> Value {
    match kind {
        "boolean" => false.into(),
        "number" => 0.into(),
        "array" => json!([]),
        _ => "".into(),
    }
}

/// Replaces the tab after line numbers by an arrow.
fn with_arrows(text: &str) -> String {
    let arrow = |line: &str| match line.split_once('\t') {
        Some((number, rest)) if number.trim_start().parse::<u64>().is_ok() => {
            format!("{number}→{rest}")
        }
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(arrow).collect()
}

fn camel_keys(value: Option<&Value>) -> Option<Value> {
    Some(match value? {
        Value::Object(fields) => {
            let camel_field =
                |(key, value): (&String, &Value)| Some((camel(key), camel_keys(Some(value))?));
            fields.iter().filter_map(camel_field).collect()
        }
        Value::Array(items) => items.iter().filter_map(|item| camel_keys(Some(item))).collect(),
        other => other.clone(),
    })
}

/// Renames the fields of a schema, by `special` or else by `rule`.
fn renamed(
    schema: &Map<String, Value>,
    special: &[(&str, &str)],
    rule: fn(&str) -> String,
) -> Map<String, Value> {
    let name = |field: &str| match special.iter().find(|(ours, _)| *ours == field) {
        Some((_, theirs)) => (*theirs).to_owned(),
        None => rule(field),
    };
    let inner = |value: &Value| match value {
        Value::Object(schema) => Value::Object(renamed(schema, special, rule)),
        other => other.clone(),
    };
    let mut new = Map::new();
    for (keyword, value) in schema {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(field, schema)| (name(field), inner(schema))).collect()
            }
            ("required", Value::Array(fields)) => fields
                .iter()
                .filter_map(Value::as_str)
                .map(|field| Value::from(name(field)))
                .collect(),
            ("items", items) => inner(items),
            (_, other) => other.clone(),
        };
        new.insert(keyword.clone(), value);
    }
    new
}

/// `file_path` as `filePath`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// `NotebookEdit` as `notebook_edit`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or_else(|| {
            let names = Dialect::ALL.map(Dialect::name).join(", ");
            format!("no dialect `{name}`; there are: {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_fields_are_those_of_the_dialect() {
        let camel = Dialect::Camel;
        assert_eq!(camel.tool("MultiEdit"), "multiedit");
        assert_eq!(camel.tool("NotebookEdit"), "notebook_edit");
        assert_eq!(Dialect::Toolcrib.tool("MultiEdit"), "MultiEdit");
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"old_string": {"type": "string"}},
                    "required": ["old_string"],
                }},
                "-i": {"type": "boolean"},
            },
            "required": ["path"],
        });
        let Value::Object(schema) = schema else { return };
        let shown = camel.arguments("LS", &schema);
        let expected = json!({
            "type": "object",
            "properties": {
                "dirPath": {"type": "string"},
                "edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"oldString": {"type": "string"}},
                    "required": ["oldString"],
                }},
                "-i": {"type": "boolean"},
            },
            "required": ["dirPath"],
        });
        assert_eq!(Value::Object(shown.into_owned()), expected);
    }

    /// Names that a dialect shows are accepted in every dialect.
    #[test]
    fn what_is_shown_is_taken() {
        let table = crate::tool_table::Table::new(crate::tools::TOOLS);
        for dialect in Dialect::ALL {
            for row in table.rows() {
                let (name, schema) = (row.entry.name, row.schema());
                let found = table.find(&dialect.tool(name)).map(|row| row.entry.name);
                assert_eq!(found.ok(), Some(name), "{dialect}");
                let shown = dialect.arguments(name, &schema.arguments);
                let fields = shown["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .zip(schema.arguments["properties"].as_object().unwrap().keys());
                for (theirs, ours) in fields.filter(|(theirs, ours)| theirs != ours) {
                    let is_alias = row.entry.aliases.iter().any(|(alias, field)| {
                        (*alias == theirs.as_str() || camel(alias) == *theirs)
                            && *field == ours.as_str()
                    });
                    assert!(is_alias || camel(ours) == *theirs, "{dialect} {name}.{theirs}");
                }
            }
        }
        assert_eq!(table.find("view_image").map(|row| row.entry.name).ok(), Some("Read"));
    }

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
}
