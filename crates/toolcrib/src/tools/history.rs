//! History: what was done.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_fs::DamagedChanges;
use toolcrib_policy::Access;

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryEntry;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};

/// Lists changes, newest first, with ids for Undo; with id, one change and its diff.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    /// Default 20.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u64>,
    #[schemars(range(min = 1))]
    id: Option<u64>,
}

impl Tool for History {
    const NAME: &'static str = "History";
    const CATEGORY: Category = Category::History;
    const HINTS: Hints = Hints::READS;

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(".".into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let log = cx.runtime().session_changes(cx.session())?;
        if let Some(id) = self.id {
            let change = log.find(id).map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    error.hint("Call History without an id to see those that there are.")
                }
                _ => error,
            })?;
            return Ok(Reply::new(line(change)).diff(cx.runtime().diff_of(change)?));
        }
        let (mut history, damaged) = (log.changes, log.damaged);
        history.reverse();
        let total = history.len();
        history.truncate(usize::try_from(self.limit.unwrap_or(20)).unwrap_or(20));
        let mut text: String = history.iter().map(line).collect();
        if total == 0 {
            text = "No file was changed yet.\n".to_owned();
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

/// So many damaged parts of the journal are named.
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
        (true, _) => " [taken back]",
        (false, true) => " [taken back in part]",
        (false, false) => "",
    };
    format!("{:>6}  {:<12} {}{undone}\n", change.id, change.age(), change.summary())
}

fn facts(change: &HistoryEntry) -> Value {
    let files: Vec<Value> =
        change.files.iter().map(|file| json!({"path": file.path, "action": file.action})).collect();
    let mut facts = json!({"id": change.id, "time_ms": change.time_ms, "tool": change.tool, "undone": change.undone, "files": files});
    if let Some(command) = &change.command {
        facts["command"] = command.as_str().into();
    }
    if change.only_ignored {
        facts["only_ignored"] = true.into();
    }
    facts
}
