//! Undo: taking changes back.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::unified_diff;

use crate::cx::{Cx, FileEdit};
use crate::error::{Error, ErrorKind};
use crate::history::{ChangeLog, HistoryEntry};
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};
use crate::undo::Plan;

/// Takes back changes that these tools made to files, newest first. What others changed since stays; where they
/// changed the same lines, nothing is written. An undo is a change too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    /// Changes. Default 1.
    #[schemars(range(min = 1, max = 100))]
    steps: Option<u64>,
    /// Just this one, as History lists it.
    #[schemars(range(min = 1))]
    id: Option<u64>,
}

impl Tool for Undo {
    const NAME: &'static str = "Undo";
    const CATEGORY: Category = Category::History;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("change", "id"), ("count", "steps")];

    fn access(&self) -> Vec<Access> {
        vec![Access::WriteAny]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        cx.journal()?;
        let log = cx.runtime().session_changes(cx.session())?;
        let changes = self.choose(&log)?;
        let plan = Plan::of(cx, &changes, &log.changes)?;
        let left: Vec<String> =
            plan.left.iter().map(|(path, why)| format!("{path} ({why})")).collect();
        if plan.edits.is_empty() && !left.is_empty() {
            let message = format!(
                "only protected files would change, and stay as they are: {}",
                left.join(", ")
            );
            return Err(Error::new(ErrorKind::Protected, message).hint(
                "Nothing was written. The operator can change them by hand, or allow it with allow_protected in the configuration.",
            ));
        }
        let diff: String =
            plan.edits.iter().map(|edit| diff(cx, edit)).collect::<Result<_, _>>()?;
        let files = plan.edits.len();
        let restored: Vec<String> =
            plan.restored.iter().map(|path| cx.show(path)).collect::<Result<_, _>>()?;
        let changed = cx.commit(plan.edits, plan.undoes, &plan.restored, &plan.directories)?;
        let did =
            if cx.dry_run() { "Dry run, nothing written. Would take back" } else { "Took back" };
        let mut says = did.to_owned();
        for change in &changes {
            says += &format!("\n  {} ({}) {}", change.id, change.age(), change.summary());
        }
        if files == 0 {
            says += "\nThe files already say what they said before; nothing was written.";
        }
        if !plan.merged.is_empty() {
            says += &format!("\nLater changes by others were kept in: {}.", plan.merged.join(", "));
        }
        if !restored.is_empty() {
            says += &format!(
                "\nProtected files that say again what they said before: {}.",
                restored.join(", ")
            );
        }
        if !left.is_empty() {
            says += &format!("\nProtected, and left as they are: {}.", left.join(", "));
        }
        let ids: Vec<u64> = changes.iter().map(|change| change.id).collect();
        let oldest = ids.iter().min().copied().unwrap_or(0);
        for damaged in log.damaged.iter().filter(|damaged| *damaged.ids.end() > oldest) {
            says += &format!("\n[{damaged}; it was not taken back]");
        }
        Ok(Reply::new(says)
            .diff(diff)
            .with("undone", ids)
            .with("files", files)
            .with_all(changed.facts()))
    }
}

impl Undo {
    fn choose(&self, log: &ChangeLog) -> Result<Vec<HistoryEntry>, Error> {
        if let Some(id) = self.id {
            if self.steps.is_some_and(|steps| steps != 1) {
                return Err(
                    Error::invalid("`id` and `steps` are both given").hint("Give one of them.")
                );
            }
            return match log.find(id) {
                Ok(change) if change.undone => {
                    Err(Error::new(ErrorKind::AlreadyApplied, format!("change {id} is taken back already"))
                        .hint("Nothing was done. To have it again, give the id of the change that took it back."))
                }
                Ok(change) => Ok(vec![change.clone()]),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(error.hint("History lists the changes."))
                }
                Err(error) => Err(error),
            };
        }
        let steps = usize::try_from(self.steps.unwrap_or(1)).unwrap_or(1);
        let standing = |change: &&HistoryEntry| !change.undone && change.undoes.is_empty();
        let newest = log.changes.iter().rev().filter(standing).take(steps);
        let chosen: Vec<HistoryEntry> = newest.cloned().collect();
        if chosen.len() < steps {
            let message = match chosen.len() {
                0 => "there is nothing to take back".to_owned(),
                known => format!("there are only {known} changes to take back"),
            };
            return Err(Error::new(ErrorKind::NotFound, message)
                .hint("Nothing was done. History lists the changes."));
        }
        Ok(chosen)
    }
}

fn diff(cx: &Cx<'_>, edit: &FileEdit) -> Result<String, Error> {
    let shown = cx.show(&edit.path)?;
    let line_chars = cx.limits().line_chars;
    Ok(unified_diff(&shown, edit.was.as_deref(), edit.now.as_deref(), line_chars).text)
}
