//! History: lists changes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_fs::DamagedChanges;
use toolcrib_policy::Access;

use super::unrecorded_changes::unrecorded_changes_note;
use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryEntry;
use crate::message_names::{HISTORY, Name};
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Lists changes, newest first, with ids for `Undo`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    /// Changes.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1_000))]
    limit: u64,
    /// One, with its diff.
    #[schemars(range(min = 1))]
    id: Option<u64>,
}

fn default_limit() -> u64 {
    20
}

const METADATA: &[MetadataField] = &[
    MetadataField::new("shown", "integer", "without `id`", "Number of changes in the reply."),
    MetadataField::new("total", "integer", "without `id`", "Number of changes."),
    MetadataField::new(
        "complete",
        "boolean",
        "without `id`",
        "Whether all changes are in the reply.",
    ),
    MetadataField::new("changes", "array of object", "without `id`", "The changes, newest first."),
    MetadataField::new("changes[].id", "integer", "with its object", "Id."),
    MetadataField::new(
        "changes[].time_ms",
        "integer",
        "with its object",
        "Time, in milliseconds since 1970.",
    ),
    MetadataField::new("changes[].tool", "string", "with its object", "The tool."),
    MetadataField::new(
        "changes[].undone",
        "boolean",
        "with its object",
        "Whether it was reverted.",
    ),
    MetadataField::new("changes[].command", "string", "changes by commands", "The command."),
    MetadataField::new(
        "changes[].only_ignored",
        "boolean",
        "only ignored files changed",
        "`true`.",
    ),
    MetadataField::new("changes[].files", "array of object", "with its object", "The files."),
    MetadataField::new("changes[].files[].path", "string", "with its object", "Path."),
    MetadataField::new(
        "changes[].files[].action",
        "string",
        "with its object",
        "`created`, `modified` or `deleted`.",
    ),
    MetadataField::new(
        "damaged",
        "array of object",
        "parts of the journal are damaged",
        "Ranges of ids that are lost.",
    ),
    MetadataField::new("damaged[].first", "integer", "with its object", "First id."),
    MetadataField::new("damaged[].last", "integer", "with its object", "Last id."),
];

impl Tool for History {
    const NAME: &'static str = "History";
    const CATEGORY: Category = Category::History;
    const HINTS: Hints = Hints::READS;
    const LOWERED: &'static [&'static str] = &["limit"];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA];

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(".".into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let log = cx.history().session_changes(cx.session())?;
        if let Some(id) = self.id {
            let change = log.find(id).map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    error.hint(format!("Call {HISTORY} without id to list the changes."))
                }
                _ => error,
            })?;
            let diff = cx.history().diff_of(change, |path| !cx.excludes(path))?;
            return Ok(Reply::new(line(change)).diff(diff));
        }
        let (mut history, damaged) = (log.changes, log.damaged);
        history.reverse();
        let total = history.len();
        history.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let mut text: String = history.iter().map(line).collect();
        if total == 0 {
            text = "No file was changed yet.\n".to_owned();
        }
        if let Some(note) = unrecorded_changes_note(cx.session(), "not listed") {
            text += &format!("{note}\n");
        }
        if history.len() < total {
            text += &format!("[{} of {total}; for more, limit: {total}]\n", history.len());
        }
        for damaged in damaged.iter().rev().take(MAX_DAMAGED) {
            text += &format!("[{damaged}]\n");
        }
        Ok(Reply::new(text)
            .with("shown", history.len())
            .with("total", total)
            .with("complete", history.len() == total)
            .with("changes", history.iter().map(facts).collect::<Vec<_>>())
            .with_all(damaged_facts(&damaged)))
    }
}

/// Number of damaged ranges to name.
const MAX_DAMAGED: usize = 20;

fn damaged_facts(damaged: &[DamagedChanges]) -> Vec<(&'static str, Value)> {
    let facts = damaged.iter().rev().take(MAX_DAMAGED);
    let facts: Vec<Value> = facts
        .map(|damaged| json!({"first": damaged.ids.start(), "last": damaged.ids.end()}))
        .collect();
    if facts.is_empty() { Vec::new() } else { vec![("damaged", facts.into())] }
}

fn line(change: &HistoryEntry) -> String {
    let undone = match (change.undone, change.undone_in_part) {
        (true, _) => " [undone]",
        (false, true) => " [undone in part]",
        (false, false) => "",
    };
    format!("{:>6}  {:<12} {}{undone}\n", change.id, change.age(), change.summary())
}

fn facts(change: &HistoryEntry) -> Value {
    let files: Vec<Value> =
        change.files.iter().map(|file| json!({"path": file.path, "action": file.action})).collect();
    let mut facts = json!({"id": change.id, "time_ms": change.time_ms, "tool": Name::tool(&change.tool).to_string(), "undone": change.undone, "files": files});
    if let Some(command) = &change.command {
        facts["command"] = command.as_str().into();
    }
    if change.only_ignored {
        facts["only_ignored"] = true.into();
    }
    facts
}
