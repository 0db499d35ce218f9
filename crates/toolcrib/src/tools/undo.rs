//! Undo: reverts changes.

mod group_by_ignored_directory;
mod report;
mod whole_directories;

use std::collections::HashSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;

use self::report::Report;
use super::unrecorded_changes::unrecorded_changes_note;
use crate::cx::{CHANGE, Cx, Revert};
use crate::error::{Error, ErrorKind};
use crate::history::{ChangeLog, HistoryEntry, IgnoredFiles};
use crate::message_names::UNDO;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::tool::{Category, Hints, Tool};
use crate::undo::{
    ChangesBy, Plan, Selection, UndoPart, UndoRequest, UndoSelection, changes_before, real_paths,
};

/// Reverts file changes by tools and commands, newest first, keeping later edits. If these overlap, nothing is
/// written. Git state, and changes of commands in /tmp, stay. Changes only to ignored files need `id`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    /// Default 1.
    #[schemars(range(min = 1, max = 100))]
    steps: Option<u64>,
    /// This change.
    #[schemars(range(min = 1))]
    id: Option<u64>,
    /// This and later changes.
    #[schemars(range(min = 1))]
    since: Option<u64>,
    /// Only this path.
    path: Option<String>,
    /// A part of the change `id` that only host programs can select.
    #[serde(skip)]
    part: UndoPart,
}

/// Earlier changes that are tried after one that cannot be undone.
const MAX_TRIED: usize = 20;

const METADATA: &[MetadataField] = &[
    MetadataField::new("undone", "array of integer", "always", "Ids of the reverted changes."),
    MetadataField::new("files", "integer", "always", "Number of files that were restored."),
    MetadataField::new(
        "passed_over",
        "array of integer",
        "newer changes of ignored files were skipped",
        "Their ids.",
    ),
    MetadataField::new("file_path", "string", "error `conflict` about one file", "The file."),
    MetadataField::new(
        "ignored",
        "array of integer",
        "error: only changes of ignored files are left",
        "Their ids.",
    ),
];

impl Tool for Undo {
    const NAME: &'static str = "Undo";
    const CATEGORY: Category = Category::History;
    const HINTS: Hints = Hints::EDITS;
    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("change", "id"), ("count", "steps"), ("file_path", "path")];
    const LOWERED: &'static [&'static str] = &["steps"];
    const RAISED: &'static [&'static str] = &[];
    const METADATA: &'static [&'static [MetadataField]] = &[METADATA, CHANGE];

    fn access(&self) -> Vec<Access> {
        vec![Access::WriteAny]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let unrecorded = unrecorded_changes_note(cx.session(), "not undone");
        match (self.undo(cx), unrecorded) {
            (Ok(reply), Some(note)) => Ok(reply.with_lines(&note)),
            (Err(error), Some(note)) => Err(error.detail_line(&note)),
            (result, None) => result,
        }
    }
}

impl Undo {
    /// An undo of one change, or of a part of it.
    pub(crate) fn of(selection: UndoSelection) -> Undo {
        let UndoSelection { id, part } = selection;
        Undo { steps: None, id: Some(id), since: None, path: None, part }
    }

    fn undo(&self, cx: &Cx<'_>) -> Result<Reply, Error> {
        cx.journal()?;
        let log = cx.history().session_changes(cx.session())?;
        let by = ChangesBy::of(cx.session(), &log);
        let chosen = Selection::of(&log, self.request(cx)?, &by)?;
        let with_older = |error| self.with_older(cx, error, &chosen, &log, &by);
        chosen.require_kept().map_err(with_older)?;
        let plan = Plan::of(cx, &chosen, &log, by.others()).map_err(with_older)?;
        if plan.edits.is_empty() && !plan.kept.is_empty() {
            return Err(with_older(only_kept(&plan, &chosen)));
        }
        let report = Report::of(cx, &chosen, &plan, &log);
        // A dry run shows the diff, because approval depends on it.
        let diffs = if cx.dry_run() { plan.edits.as_slice() } else { &[] };
        let mut ignored = IgnoredFiles::new(&cx.paths().workspace);
        let shown = diffs.iter().filter(|edit| !ignored.count(&edit.path));
        let diff: String = shown.map(|edit| cx.diff_of(edit)).collect();
        let diff = diff + &ignored.line(|path| cx.show_real(path));
        let files = plan.edits.len();
        let undone: Vec<u64> = chosen.changes.iter().map(|change| change.id).collect();
        let is_partial = chosen.changes.iter().any(|change| change.is_partial);
        let (only, within) = match chosen.only.as_slice() {
            [] if is_partial => (None, cx.visible_roots()),
            [] => (None, Vec::new()),
            [one] => (Some(one.clone()), Vec::new()),
            several => (None, several.to_vec()),
        };
        let is_hunk = chosen.hunk.is_some();
        let changed = cx.restore(Revert {
            edits: plan.edits,
            // The other hunks stay in effect, so the change is not undone.
            undoes: if is_hunk { Vec::new() } else { undone.clone() },
            hunk_of: undone.first().copied().filter(|_| is_hunk),
            hunk: chosen.hunk,
            only: only.filter(|_| !is_hunk),
            within,
            protected: plan.restored,
            needed: plan.needed,
            unneeded: plan.unneeded,
        });
        let changed = changed.map_err(with_older)?;
        let reply =
            Reply::new(report.text()).diff(diff).with("undone", undone).with("files", files);
        let reply = match chosen.skipped_ignored.as_slice() {
            [] => reply,
            ids => reply.with("passed_over", ids),
        };
        Ok(reply.with_all(changed.facts()))
    }

    /// Adds the way past an obstacle to the error of an undo without an id, which would meet the obstacle again.
    fn with_older(
        &self,
        cx: &Cx<'_>,
        error: Error,
        chosen: &Selection,
        log: &ChangeLog,
        by: &ChangesBy,
    ) -> Error {
        let is_plain = (self.id, self.since, &self.path) == (None, None, &None);
        let [failed] = chosen.changes.as_slice() else { return error };
        let is_lasting = matches!(
            error.kind(),
            ErrorKind::Conflict
                | ErrorKind::IsDirectory
                | ErrorKind::NotFound
                | ErrorKind::NotRegular
                | ErrorKind::OutsideWorkspace
                | ErrorKind::Permission
                | ErrorKind::Protected
                | ErrorKind::ReadOnly
                | ErrorKind::TooLarge
                | ErrorKind::Unsupported
        );
        if !is_plain || !is_lasting {
            return error;
        }
        // Only writing finds out that a directory is read-only, so a plan cannot tell.
        let is_by_directory = matches!(error.kind(), ErrorKind::Permission | ErrorKind::ReadOnly);
        // A change of other files has nothing to do with a conflict about one.
        let file = error.metadata().get("file_path").and_then(|file| file.as_str());
        let is_about_it = |change: &HistoryEntry| {
            file.is_none_or(|file| change.files.iter().any(|one| one.path == file))
        };
        let before = changes_before(log, failed.id, by).filter(|change| is_about_it(change));
        let mut before = before.take(MAX_TRIED).filter(|change| {
            !(is_by_directory && has_same_directory(failed, change))
                && can_be_undone(cx, change, log, by)
        });
        let Some(older) = before.next() else { return error };
        let (id, summary) = (older.id, older.summary());
        let hint = format!(
            "{} {UNDO} with id {id} reverts an earlier change: {summary}.",
            error.hint_text()
        );
        error.hint(hint)
    }

    fn request(&self, cx: &Cx<'_>) -> Result<UndoRequest, Error> {
        let steps = self.steps.filter(|steps| *steps != 1 || (self.id, self.since) == (None, None));
        let given = [
            ("steps", steps.is_some()),
            ("id", self.id.is_some()),
            ("since", self.since.is_some()),
        ];
        let given: Vec<&str> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
        if let [first, second, ..] = given[..] {
            return Err(Error::invalid(format!("`{second}` and `{first}` are both given"))
                .hint("Give one of them."));
        }
        match (&self.part, self.id) {
            (UndoPart::Paths(paths), Some(id)) => {
                let paths = paths.iter().map(|path| real_paths(cx, path)).collect::<Result<_, _>>();
                return Ok(UndoRequest::Paths { id, paths: paths? });
            }
            (UndoPart::Hunk { path, index }, Some(id)) => {
                return Ok(UndoRequest::Hunk { id, at: real_paths(cx, path)?, index: *index });
            }
            _ => {}
        }
        let at = self.path.as_deref().map(|path| real_paths(cx, path)).transpose()?;
        let steps = usize::try_from(steps.unwrap_or(1)).unwrap_or(1);
        match (self.since, self.id, at) {
            (Some(_), _, Some(_)) => Err(Error::invalid("`since` and `path` are both given")
                .hint("Give one of them. Use path with steps or id.")),
            (Some(id), ..) => Ok(UndoRequest::Since(id)),
            (None, Some(id), at) => Ok(UndoRequest::One { id, at }),
            (None, None, Some((paths, shown))) => Ok(UndoRequest::StepsAt { steps, paths, shown }),
            (None, None, None) => Ok(UndoRequest::Steps(steps)),
        }
    }
}

/// Whether an undo of this change alone has a plan that writes something.
fn can_be_undone(cx: &Cx<'_>, change: &HistoryEntry, log: &ChangeLog, by: &ChangesBy) -> bool {
    let alone = Selection::whole(vec![change.clone()]);
    Plan::of(cx, &alone, log, by.others())
        .is_ok_and(|plan| !plan.edits.is_empty() || plan.kept.is_empty())
}

/// Whether two changes have files in the same directory.
fn has_same_directory(one: &HistoryEntry, other: &HistoryEntry) -> bool {
    let directories = |change: &HistoryEntry| -> HashSet<PathBuf> {
        change.effective_files().filter_map(|file| Some(file.path().parent()?.to_owned())).collect()
    };
    !directories(one).is_disjoint(&directories(other))
}

/// The error if only files that may not be changed would change.
fn only_kept(plan: &Plan, chosen: &Selection) -> Error {
    let message = format!(
        "only files that may not be changed would change, and they are not restored: {}",
        report::not_restored(plan).join(", ")
    );
    // The operator's own commands have no rules, but the same protected files.
    let command = match chosen.changes.as_slice() {
        [change] => format!("`toolcrib undo {}`", change.id),
        _ => "`toolcrib undo`".to_owned(),
    };
    let for_denied =
        format!("The operator can change the rule, or undo the change with {command}.");
    let for_protected = "The operator can change protected files by hand, or allow tools to change them with allow_protected in the \
         configuration.";
    let next = match plan.keeps_denied_and_protected() {
        (true, false) => for_denied,
        (false, _) => for_protected.to_owned(),
        (true, true) => format!("{for_denied} {for_protected}"),
    };
    Error::new(ErrorKind::Protected, message).hint(format!("Nothing was written. {next}"))
}
