//! Presets of tool and field names, for models that were trained on other names.
//!
//! A dialect changes only the listing and the results. Calls are accepted with the names of all dialects: tool
//! names without regard to case and `_`, fields in snake_case and camelCase, and every alias.

mod cli_names;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

pub(crate) use self::cli_names::with_arguments;

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
    /// Commands of `toolcrib` and of the system, in messages to a person. No preset for calls.
    CommandLine,
}

/// Exceptions of a dialect for one tool: its name, and renamed fields.
struct Words {
    tool: &'static str,
    shown: &'static str,
    fields: &'static [(&'static str, &'static str)],
}

const CAMEL: &[Words] = &[
    Words { tool: "MultiEdit", shown: "multiedit", fields: &[] },
    Words { tool: "ApplyPatch", shown: "apply_patch", fields: &[("patch", "patchText")] },
    Words { tool: "LS", shown: "ls", fields: &[("path", "dirPath")] },
];

const CODEX: &[Words] = &[
    Words {
        tool: "Bash",
        shown: "shell",
        fields: &[("cwd", "workdir"), ("timeout", "timeout_ms")],
    },
    Words { tool: "ApplyPatch", shown: "apply_patch", fields: &[("patch", "input")] },
    Words { tool: "Read", shown: "read_file", fields: &[] },
    Words { tool: "LS", shown: "list_dir", fields: &[("path", "dir_path")] },
];

/// Aliases that do not follow from a rule. Accepted in every dialect.
const OTHER_NAMES: [(&str, &str); 4] =
    [("shell", "Bash"), ("read_file", "Read"), ("view_image", "Read"), ("list_dir", "LS")];

/// The tool with this alias.
pub(crate) fn other_name(name: &str) -> Option<&'static str> {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, tool)| *tool)
}

impl Dialect {
    /// All presets for calls.
    pub const ALL: [Dialect; 3] = [Dialect::Toolcrib, Dialect::Camel, Dialect::Codex];

    /// Returns the name, as in `--dialect`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Toolcrib => "toolcrib",
            Dialect::Camel => "camel",
            Dialect::Codex => "codex",
            Dialect::CommandLine => "command-line",
        }
    }

    /// Returns whether results are structured objects.
    pub fn is_structured(self) -> bool {
        self == Dialect::Camel
    }

    /// The name of a tool.
    pub fn tool_name(self, tool: &str) -> Cow<'_, str> {
        match (self, self.words(tool)) {
            (Dialect::Toolcrib | Dialect::CommandLine, _) => tool.into(),
            (_, Some(words)) => words.shown.into(),
            (_, None) => snake(tool).into(),
        }
    }

    /// The name of a tool that a message suggests. For a person it is a command that does the same.
    pub(crate) fn suggested_tool(self, tool: &str) -> Cow<'_, str> {
        match self {
            Dialect::CommandLine => cli_names::command(tool),
            dialect => dialect.tool_name(tool),
        }
    }

    /// The name of a field of a tool.
    pub fn field_name<'a>(self, tool: &str, field: &'a str) -> Cow<'a, str> {
        let special = self.words(tool).map_or(&[][..], |words| words.fields);
        match special.iter().find(|(ours, _)| *ours == field) {
            Some((_, theirs)) => (*theirs).into(),
            None => self.key(field),
        }
    }

    /// A field by the rule, without regard to special names of a tool.
    pub(crate) fn key(self, field: &str) -> Cow<'_, str> {
        if self == Dialect::Camel { camel(field).into() } else { field.into() }
    }

    /// The schema of a tool's arguments: its fields, and the `known` names in its descriptions.
    pub(crate) fn arguments(
        self,
        tool: &str,
        schema: &Map<String, Value>,
        known: &HashSet<&str>,
    ) -> Map<String, Value> {
        let inner = |value: &Value| match value {
            Value::Object(schema) => Value::Object(self.arguments(tool, schema, known)),
            other => other.clone(),
        };
        let name = |field: &str| self.field_name(tool, field).into_owned();
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
                ("description", Value::String(text)) => self.description(tool, text, known).into(),
                (_, other) => other.clone(),
            };
            new.insert(keyword.clone(), value);
        }
        new
    }

    /// A description of a tool or of one of its fields. It has names in backticks; here they are spelled in the
    /// dialect, without the backticks, which every conversation would pay for. Other text in backticks stays.
    pub(crate) fn description(self, tool: &str, text: &str, known: &HashSet<&str>) -> String {
        let mut shown = String::with_capacity(text.len());
        for (at, part) in text.split('`').enumerate() {
            match at % 2 {
                0 => shown.push_str(part),
                _ if !known.contains(part) => shown.extend(["`", part, "`"]),
                _ if part.starts_with(|c: char| c.is_ascii_uppercase()) => {
                    shown.push_str(&self.tool_name(part));
                }
                _ => shown.push_str(&self.field_name(tool, part)),
            }
        }
        shown
    }

    fn words(self, tool: &str) -> Option<&'static Words> {
        let all = match self {
            Dialect::Toolcrib | Dialect::CommandLine => &[],
            Dialect::Camel => CAMEL,
            Dialect::Codex => CODEX,
        };
        all.iter().find(|words| words.tool == tool)
    }
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
            format!("unknown dialect `{name}`; use one of: {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_fields_are_those_of_the_dialect() {
        let camel = Dialect::Camel;
        assert_eq!(camel.tool_name("MultiEdit"), "multiedit");
        assert_eq!(camel.tool_name("NotebookEdit"), "notebook_edit");
        assert_eq!(Dialect::Toolcrib.tool_name("MultiEdit"), "MultiEdit");
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
        let shown = camel.arguments("LS", &schema, &HashSet::new());
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
        assert_eq!(Value::Object(shown), expected);
    }

    /// Names that a dialect shows are accepted in every dialect.
    #[test]
    fn shown_names_are_accepted() {
        let table = crate::tool_table::Table::new(crate::tools::TOOLS);
        for dialect in Dialect::ALL {
            for row in table.rows() {
                let (name, schema) = (row.entry.name, row.schema());
                let found = table.find(&dialect.tool_name(name)).map(|row| row.entry.name);
                assert_eq!(found.ok(), Some(name), "{dialect}");
                let shown = dialect.arguments(name, &schema.arguments, &HashSet::new());
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
    fn descriptions_spell_names_in_the_dialect() {
        let text = "`Read` it with `file_path`; `**` and `JSON` stay, `cwd` too.";
        let known = HashSet::from(["Read", "file_path", "cwd"]);
        for (dialect, expected) in [
            (Dialect::Camel, "read it with filePath; `**` and `JSON` stay, cwd too."),
            (Dialect::Codex, "read_file it with file_path; `**` and `JSON` stay, workdir too."),
            (Dialect::Toolcrib, "Read it with file_path; `**` and `JSON` stay, cwd too."),
        ] {
            assert_eq!(dialect.description("Bash", text, &known), expected);
        }
    }
}
