//! The table of tools: those that are built in, and those that a library user registered.

use std::sync::OnceLock;

use crate::dialect::other_name;
use crate::error::{Error, ErrorKind};
use crate::names::Name;
use crate::schema::Schema;
use crate::suggest::{fold, similar_names};
use crate::tool::Entry;

/// The tools by name, in the order in which they are listed.
pub(crate) struct Table {
    rows: Vec<Row>,
}

/// A tool and its schema, which is made when it is first needed.
pub(crate) struct Row {
    pub(crate) entry: Entry,
    schema: OnceLock<Schema>,
}

/// The tightest of the clients' rules: OpenAI's and Anthropic's.
const MAX_NAME: usize = 64;
/// OpenAI's; Claude Code cuts at 2,048.
pub(crate) const MAX_DESCRIPTION: usize = 1_024;

impl Table {
    pub(crate) fn new(entries: &[Entry]) -> Table {
        Table { rows: entries.iter().copied().map(Row::new).collect() }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Finds a tool without regard to case and `_`.
    pub(crate) fn find(&self, name: &str) -> Result<&Row, Error> {
        let row = |name: &str| {
            let wanted = fold(name);
            self.rows.iter().find(|row| fold(row.entry.name) == wanted)
        };
        // A tool of a library user's own comes before another name of ours.
        row(name).or_else(|| row(other_name(name)?)).ok_or_else(|| {
            let names = || self.rows.iter().map(|row| row.entry.name);
            let mut listed = similar_names(name, names(), 3);
            listed.extend(names().filter(|name| !listed.contains(name)).collect::<Vec<_>>());
            let name: String = name.chars().take(MAX_NAME).collect();
            let spelled = |name| Name::tool(name).to_string();
            Error::invalid(format!("no tool `{name}`")).hint(format!(
                "There are: {}.",
                listed.into_iter().map(spelled).collect::<Vec<_>>().join(", ")
            ))
        })
    }

    /// Adds a tool, if every client could take it.
    pub(crate) fn register(&mut self, entry: Entry) -> Result<(), Error> {
        let row = Row::new(entry);
        if let Some(fault) = self.fault(&row) {
            let name = entry.name;
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("cannot register `{name}`: {fault}"),
            ));
        }
        self.rows.push(row);
        Ok(())
    }

    /// What is wrong with a tool, if anything.
    pub(crate) fn fault(&self, row: &Row) -> Option<String> {
        let name = row.entry.name;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
            return Some(format!("a name has 1 to {MAX_NAME} letters, digits, `_` and `-`"));
        }
        let taken = self
            .rows
            .iter()
            .any(|other| !std::ptr::eq(other, row) && fold(other.entry.name) == fold(name));
        if taken {
            return Some("there is a tool of that name".to_owned());
        }
        let schema = row.schema();
        let length = schema.description.chars().count();
        if length == 0 || length > MAX_DESCRIPTION {
            return Some(format!(
                "its description (the struct's doc comment) has {length} characters; 1 to {MAX_DESCRIPTION} are needed"
            ));
        }
        if schema.arguments.get("type").is_none_or(|name| name != "object") {
            return Some("its arguments are no struct with named fields".to_owned());
        }
        let text = serde_json::Value::Object(schema.arguments.clone()).to_string();
        text.contains("\"$ref\"").then(|| "its arguments refer to themselves".to_owned())
    }
}

impl Row {
    fn new(entry: Entry) -> Row {
        Row { entry, schema: OnceLock::new() }
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.schema.get_or_init(self.entry.schema)
    }
}
