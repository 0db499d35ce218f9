//! What a tool is: a struct of arguments, what it touches, what it does.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_policy::Access;

use crate::cx::Cx;
use crate::error::Error;
use crate::metadata_field::MetadataField;
use crate::reply::Reply;
use crate::schema::Schema;

/// A tool. The type is the struct of its arguments: its fields are the schema, its doc comment is
/// the description that the model reads, and the doc comments of the fields are theirs.
///
/// Derive `Deserialize` with `#[serde(deny_unknown_fields)]`, and `JsonSchema`.
pub trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    const NAME: &'static str;

    /// What it belongs to.
    const CATEGORY: Category;

    /// What a client may know of it before it is called.
    const HINTS: Hints;

    /// Other names that callers use for its fields, each with the field it means. Names that differ
    /// in case or `_` only need no word here.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// The metadata of its replies, for the reference documentation: tables of fields.
    const METADATA: &'static [&'static [MetadataField]] = &[];

    /// What the call will touch, from its arguments alone. [`Cx`] holds the tool to it.
    fn access(&self) -> Vec<Access>;

    /// Does it.
    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error>;
}

/// What a tool belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Files: reading and changing them.
    File,
    /// Commands.
    Execution,
    /// What was done, and taking it back.
    History,
    /// A library user's own.
    Other,
}

impl Category {
    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Category::File => "file",
            Category::Execution => "execution",
            Category::History => "history",
            Category::Other => "other",
        }
    }
}

/// What a client may know of a tool before it is called, as MCP names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite or delete, and not only add.
    pub destructive: bool,
    /// Twice is the same as once.
    pub idempotent: bool,
    /// It touches things outside the workspace.
    pub open_world: bool,
}

impl Hints {
    /// A tool that only looks at the workspace.
    pub const READS: Hints =
        Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    /// A tool that runs what it is told.
    pub const RUNS: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

    /// A tool that changes files of the workspace.
    pub const EDITS: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
}

/// A decoded call of some tool.
pub(crate) trait AnyTool: Send {
    fn access(&self) -> Vec<Access>;
    fn run(self: Box<Self>, cx: &mut Cx<'_>) -> Result<Reply, Error>;
}

impl<T: Tool> AnyTool for T {
    fn access(&self) -> Vec<Access> {
        Tool::access(self)
    }

    fn run(self: Box<Self>, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        Tool::run(*self, cx)
    }
}

/// A tool as the table has it: facts and two functions.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) category: Category,
    pub(crate) hints: Hints,
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    pub(crate) metadata: &'static [&'static [MetadataField]],
    pub(crate) schema: fn() -> Schema,
    pub(crate) decode: fn(Value) -> Result<Box<dyn AnyTool>, String>,
}

impl Entry {
    pub(crate) const fn of<T: Tool>() -> Entry {
        Entry {
            name: T::NAME,
            category: T::CATEGORY,
            hints: T::HINTS,
            aliases: T::ALIASES,
            metadata: T::METADATA,
            schema: Schema::of::<T>,
            decode: decode::<T>,
        }
    }
}

fn decode<T: Tool>(arguments: Value) -> Result<Box<dyn AnyTool>, String> {
    match serde_path_to_error::deserialize::<_, T>(arguments) {
        Ok(tool) => Ok(Box::new(tool)),
        Err(error) => Err(format!("`{}`: {}", error.path(), error.inner())),
    }
}
