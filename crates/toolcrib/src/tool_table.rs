//! The table of tools: those that are built in, and those that a library user registered.

use std::sync::{Arc, OnceLock};

use crate::dialect::other_name;
use crate::error::{Error, ErrorKind};
use crate::message_names::Name;
use crate::schema::Schema;
use crate::schema_fault::schema_fault;
use crate::strip_tool_mentions::without_mentions;
use crate::suggest::{fold, similar_names};
use crate::tool::Entry;

/// The tools by name, in the order in which they are listed.
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Tools that exist and that the operator has left out.
    disabled_error: Vec<&'static str>,
}

/// A tool and its schema, which is made when it is first needed.
pub(crate) struct Row {
    pub(crate) entry: Entry,
    /// Whether models are told of it.
    pub(crate) is_listed: bool,
    /// Tools that its description does not mention.
    unlisted: Arc<[&'static str]>,
    schema: OnceLock<Schema>,
}

/// The tightest of the clients' rules: OpenAI's and Anthropic's.
const MAX_NAME: usize = 64;
/// What refuses a tool that was left out, as replies and records name rules.
const DISABLED_RULE: &str = "tools";
/// OpenAI's; Claude Code cuts at 2,048.
pub(crate) const MAX_DESCRIPTION: usize = 1_024;

impl Table {
    pub(crate) fn new(entries: &[Entry]) -> Table {
        Table { rows: entries.iter().copied().map(Row::new).collect(), disabled_error: Vec::new() }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The names of all tools, also of those that were left out.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|row| row.entry.name).chain(self.disabled_error.iter().copied())
    }

    /// The name of the tool that is meant, without regard to case and `_`, also if it was left out.
    pub(crate) fn known_name(&self, name: &str) -> Option<&'static str> {
        let known = |name: &str| {
            let wanted = fold(name);
            self.names().find(|known| fold(known) == wanted)
        };
        // A registered tool takes precedence over an alias of a built-in one.
        known(name).or_else(|| known(other_name(name)?))
    }

    /// Finds a tool without regard to case and `_`.
    pub(crate) fn find(&self, name: &str) -> Result<&Row, Error> {
        let known = self.known_name(name);
        let row = known.and_then(|known| self.rows.iter().find(|row| row.entry.name == known));
        row.ok_or_else(|| {
            let names = || self.rows.iter().filter(|row| row.is_listed).map(|row| row.entry.name);
            if let Some(known) = known {
                return disabled_error(known, names());
            }
            let mut listed = similar_names(name, names(), 3);
            listed.extend(names().filter(|name| !listed.contains(name)).collect::<Vec<_>>());
            let name: String = name.chars().take(MAX_NAME).collect();
            let spelled = |name| Name::tool(name).to_string();
            Error::invalid(format!("no tool `{name}`")).hint(format!(
                "Available: {}.",
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

    /// Puts a tool in the place of the one of the same name.
    pub(crate) fn replace(&mut self, entry: Entry) -> Result<(), Error> {
        let same = |row: &Row| fold(row.entry.name) == fold(entry.name);
        let Some(at) = self.rows.iter().position(same) else {
            let message = format!("cannot replace `{}`: no tool has that name", entry.name);
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        self.rows.remove(at);
        self.register(entry)?;
        self.rows[at..].rotate_right(1);
        Ok(())
    }

    /// Leaves tools out: a call of one is refused as such.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&Row) -> bool) {
        self.disabled_error.extend(self.rows.iter().filter(|row| is_left_out(row)).map(Row::name));
        self.rows.retain(|row| !is_left_out(row));
    }

    /// Does not list tools: a call of one is still decided on.
    pub(crate) fn unlist(&mut self, is_unlisted: impl Fn(&Row) -> bool) {
        self.rows.iter_mut().for_each(|row| row.is_listed &= !is_unlisted(row));
    }

    /// Removes the tools that are not listed from the descriptions of the others.
    pub(crate) fn omit_mentions(&mut self) {
        let unlisted = self.rows.iter().filter(|row| !row.is_listed).map(Row::name);
        let unlisted: Arc<[&str]> = unlisted.chain(self.disabled_error.iter().copied()).collect();
        for row in &mut self.rows {
            (row.unlisted, row.schema) = (unlisted.clone(), OnceLock::new());
        }
    }

    /// Why a tool cannot be registered. `None` if it can.
    pub(crate) fn fault(&self, row: &Row) -> Option<String> {
        let name = row.entry.name;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
            return Some(format!("a name has 1 to {MAX_NAME} letters, digits, `_` and `-`"));
        }
        // Also the name of a tool that was left out: raw operations are found by the name of their tool.
        let others = self.rows.iter().filter(|other| !std::ptr::eq(*other, row)).map(Row::name);
        let taken = others
            .chain(self.disabled_error.iter().copied())
            .any(|other| fold(other) == fold(name));
        if taken {
            return Some("a tool with that name exists".to_owned());
        }
        let schema = row.schema();
        let length = schema.description.chars().count();
        if length == 0 || length > MAX_DESCRIPTION {
            return Some(format!(
                "its description (the struct's doc comment) has {length} characters; 1 to {MAX_DESCRIPTION} are needed"
            ));
        }
        if schema.arguments.get("type").is_none_or(|name| name != "object") {
            return Some("its arguments are not a struct with named fields".to_owned());
        }
        let text = serde_json::Value::Object(schema.arguments.clone()).to_string();
        if text.contains("\"$ref\"") {
            return Some("its schema has a `$ref`; write the schema in its place".to_owned());
        }
        schema_fault(&schema.arguments)
    }
}

impl Row {
    fn new(entry: Entry) -> Row {
        Row { entry, is_listed: true, unlisted: Arc::default(), schema: OnceLock::new() }
    }

    fn name(&self) -> &'static str {
        self.entry.name
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| {
            let schema = self.entry.source.schema();
            let description = without_mentions(&schema.description, &self.unlisted);
            Schema { description, ..schema }
        })
    }
}

/// The refusal of a call of a tool that the operator has left out.
fn disabled_error(tool: &str, others: impl Iterator<Item = &'static str>) -> Error {
    let others: Vec<&str> = others.collect();
    Error::new(ErrorKind::Denied, format!("{tool} was not allowed: the operator disabled this tool"))
        .hint(format!(
            "Rule: {DISABLED_RULE}. Nothing was done. Available: {}. The operator selects tools with `tools` and `no_tools`.",
            others.join(", ")
        ))
        .with("rule", DISABLED_RULE)
}
