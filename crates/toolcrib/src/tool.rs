//! The `Tool` trait.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_policy::Access;

use crate::cx::Cx;
use crate::error::Error;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::schema::Schema;

/// A tool that models can call.
///
/// The type is the struct of the tool's arguments. Its doc comment is the description for the model; its fields
/// and their doc comments become the JSON Schema. Derive `Deserialize` with `#[serde(deny_unknown_fields)]`,
/// and `JsonSchema`.
///
/// ```
/// use serde::Deserialize;
/// use toolcrib::{
///     Access, Call, Category, Cx, Error, Hints, JsonSchema, Options, Reply, Runtime, Tool,
/// };
///
/// /// Counts the bytes of a file.
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct CountBytes {
///     /// Path of the file.
///     file_path: String,
/// }
///
/// impl Tool for CountBytes {
///     const NAME: &'static str = "CountBytes";
///     const CATEGORY: Category = Category::Other;
///     const HINTS: Hints = Hints::READS;
///
///     fn access(&self) -> Vec<Access> {
///         vec![Access::Read(self.file_path.clone().into())]
///     }
///
///     fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
///         let size = cx.open(&self.file_path)?.size();
///         Ok(Reply::new(format!("{size} bytes")).with("bytes", size))
///     }
/// }
///
/// # fn main() -> Result<(), Error> {
/// let root = env!("CARGO_MANIFEST_DIR");
/// let runtime = Runtime::builder().root(root).register::<CountBytes>().build()?;
/// let session = runtime.session();
/// let call = Call::new("CountBytes", serde_json::json!({"file_path": "Cargo.toml"}));
/// let reply = runtime.call(&session, call, Options::default())?;
/// assert!(reply.text().ends_with(" bytes"));
/// # Ok(())
/// # }
/// ```
pub trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// Name: ASCII letters, digits, `_` and `-`, at most 64 characters.
    const NAME: &'static str;

    /// Category in listings.
    const CATEGORY: Category;

    /// Behaviour hints for clients.
    const HINTS: Hints;

    /// Other names for fields that callers use, as pairs of alias and field. Names that differ only in case or
    /// `_` are accepted without an alias.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];

    /// Fields with a maximum that are lowered to it, with a note, instead of refused. For limits, where less than
    /// requested is still useful.
    const LOWERED: &'static [&'static str] = &[];

    /// Fields with a minimum that a smaller number is raised to, with a note, instead of refused. For limits, where
    /// more than requested does no harm.
    const RAISED: &'static [&'static str] = Self::LOWERED;

    /// The metadata of its replies, for the reference documentation: tables of fields.
    const METADATA: &'static [&'static [MetadataField]] = &[];

    /// Returns everything that the call will access, computed from the arguments alone. The policy decides on
    /// it before [`Tool::run`], and [`Cx`] denies any other access.
    fn access(&self) -> Vec<Access>;

    /// Purpose of the call. The approver sees it as the agent's own words.
    fn description(&self) -> Option<&str> {
        None
    }

    /// Performs the call. `cx` gives access to the declared paths.
    ///
    /// # Errors
    ///
    /// Return an [`Error`] whose message says what happened and whose hint says what to do next; the model
    /// reads both.
    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error>;
}

/// Category of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Reads or changes files.
    File,
    /// Runs commands.
    Execution,
    /// Shows or reverts changes.
    History,
    /// Any other tool.
    Other,
}

impl Category {
    /// Returns the name in listings.
    pub fn name(self) -> &'static str {
        match self {
            Category::File => "file",
            Category::Execution => "execution",
            Category::History => "history",
            Category::Other => "other",
        }
    }
}

/// Behaviour of a tool, as in MCP's tool annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may overwrite or delete.
    pub destructive: bool,
    /// A repeated call has no further effect.
    pub idempotent: bool,
    /// The tool accesses systems outside the workspace.
    pub open_world: bool,
}

impl Hints {
    /// For a tool that only reads the workspace.
    pub const READS: Hints =
        Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    /// For a tool that runs arbitrary commands.
    pub const RUNS: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

    /// For a tool that changes files of the workspace.
    pub const EDITS: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
}

/// A decoded call.
pub(crate) trait AnyTool: Send {
    fn access(&self) -> Vec<Access>;
    fn description(&self) -> Option<String>;
    fn run(self: Box<Self>, cx: &mut Cx<'_>) -> Result<Reply, Error>;
}

impl<T: Tool> AnyTool for T {
    fn access(&self) -> Vec<Access> {
        Tool::access(self)
    }

    fn description(&self) -> Option<String> {
        Tool::description(self).map(str::to_owned)
    }

    fn run(self: Box<Self>, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        Tool::run(*self, cx)
    }
}

/// A tool in the table.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) category: Category,
    pub(crate) hints: Hints,
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    pub(crate) lowered: &'static [&'static str],
    pub(crate) raised: &'static [&'static str],
    pub(crate) metadata: &'static [&'static [MetadataField]],
    pub(crate) source: &'static dyn ToolSource,
}

/// Makes the schema and the decoded calls of a tool.
pub(crate) trait ToolSource: Sync {
    fn schema(&self) -> Schema;
    fn decode(&'static self, arguments: Value) -> Result<Box<dyn AnyTool>, String>;
}

/// A tool whose arguments are a struct.
struct TypedTool<T>(PhantomData<fn() -> T>);

impl Entry {
    pub(crate) const fn of<T: Tool>() -> Entry {
        Entry {
            name: T::NAME,
            category: T::CATEGORY,
            hints: T::HINTS,
            aliases: T::ALIASES,
            lowered: T::LOWERED,
            raised: T::RAISED,
            metadata: T::METADATA,
            source: &TypedTool::<T>(PhantomData),
        }
    }
}

impl<T: Tool> ToolSource for TypedTool<T> {
    fn schema(&self) -> Schema {
        Schema::of::<T>()
    }

    fn decode(&'static self, arguments: Value) -> Result<Box<dyn AnyTool>, String> {
        match serde_path_to_error::deserialize::<_, T>(arguments) {
            Ok(tool) => Ok(Box::new(tool)),
            Err(error) => Err(format!("`{}`: {}", error.path(), error.inner())),
        }
    }
}
