//! A tool of the host program whose schema is a value, such as a function of an agent in another language.

use serde_json::{Map, Value};
use toolcrib_policy::Access;

use crate::cx::Cx;
use crate::error::Error;
use crate::reply::Reply;
use crate::schema::Schema;
use crate::tool::{AnyTool, Category, Entry, Hints, ToolSource};

/// A tool of the host program. Unlike a [`crate::Tool`] it is a value, so that it can be made while the program runs.
pub struct HostTool {
    /// Name: ASCII letters, digits, `_` and `-`, at most 64 characters.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object, without `$ref`.
    pub arguments: Map<String, Value>,
    /// Whether the tool changes nothing.
    pub is_read_only: bool,
    /// What the tool acts on outside the workspace, such as a host. The policy decides on it. `None` if nothing.
    pub reaches: Option<String>,
    /// Performs a call.
    pub run: Box<HostToolFunction>,
}

/// Performs a call of a [`HostTool`] with its checked arguments.
pub type HostToolFunction = dyn Fn(Value, &Cx<'_>) -> Result<Reply, Error> + Send + Sync;

impl HostTool {
    /// The row of the table. The tool stays in memory until the process ends, like a tool that is a type.
    pub(crate) fn into_entry(self) -> Entry {
        let tool: &'static HostTool = Box::leak(Box::new(self));
        let reads = tool.is_read_only;
        Entry {
            name: &tool.name,
            category: Category::Other,
            hints: Hints {
                read_only: reads,
                destructive: !reads,
                idempotent: reads,
                open_world: tool.reaches.is_some(),
            },
            aliases: &[],
            lowered: &[],
            raised: &[],
            metadata: &[],
            source: tool,
        }
    }
}

impl ToolSource for HostTool {
    fn schema(&self) -> Schema {
        let mut arguments = self.arguments.clone();
        arguments.entry("type").or_insert_with(|| "object".into());
        arguments.insert("description".to_owned(), self.description.clone().into());
        Schema::of_value(Value::Object(arguments))
    }

    fn decode(&'static self, arguments: Value) -> Result<Box<dyn AnyTool>, String> {
        Ok(Box::new(HostCall { tool: self, arguments }))
    }
}

/// A decoded call of a host tool.
struct HostCall {
    tool: &'static HostTool,
    arguments: Value,
}

impl AnyTool for HostCall {
    fn access(&self) -> Vec<Access> {
        self.tool.reaches.iter().map(|reached| Access::Reach(reached.clone())).collect()
    }

    fn description(&self) -> Option<String> {
        None
    }

    fn run(self: Box<Self>, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        if cx.dry_run() && !self.tool.is_read_only {
            return Ok(Reply::new("dry run: the tool was not run"));
        }
        (self.tool.run)(self.arguments, cx)
    }
}
