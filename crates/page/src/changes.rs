//! Changes of files: their diffs, and undo and redo of them and of parts of them.

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib::{
    Answer, Approver, Dialect, FileDiff, FileUndo, FileUndoResult, HistoryEntry, LineHunk,
    NumberedLine, OperatorLogs, Options, Question, Reply, Runtime, Session, UndoPart,
    UndoSelection,
};

use crate::api_error::ApiError;
use crate::operator::Operator;

/// Paths in one undo.
const MAX_PATHS: usize = 500;

/// The body of `POST /api/changes/ID/undo`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UndoBody {
    paths: Option<Vec<String>>,
    hunk: Option<Hunk>,
    dry_run: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hunk {
    path: String,
    index: usize,
}

/// The person at the page is the operator, who may do it.
struct Yes;

impl Approver for Yes {
    fn name(&self) -> &'static str {
        "page"
    }

    fn ask(&self, _question: &Question<'_>) -> Answer {
        Answer::Allow
    }
}

/// The workspace of a change, with a session of the operator in it.
struct ChangeWorkspace {
    runtime: Runtime,
    session: Session,
    path: String,
    id: u64,
}

impl ChangeWorkspace {
    fn of(
        logs: &OperatorLogs,
        operator: &dyn Operator,
        id: &str,
    ) -> Result<ChangeWorkspace, ApiError> {
        let no_id = || ApiError::not_found(format!("{id} is not the id of a change."));
        let id: u64 = id.parse().map_err(|_| no_id())?;
        let path = logs.workspace_of_change(id)?;
        let runtime = operator.operator_runtime(&path).map_err(ApiError::io)?;
        let session = runtime.session().for_one_call();
        let path = path.to_string_lossy().into_owned();
        Ok(ChangeWorkspace { runtime, session, path, id })
    }

    fn undo(&self, part: UndoPart, id: u64, dry_run: bool) -> Result<Value, ApiError> {
        let selection = UndoSelection { id, part };
        let done = if dry_run {
            self.runtime.preview_undo(&self.session, selection)
        } else {
            let dialect = Dialect::CommandLine;
            let options = Options { approver: &Yes, dialect, ..Options::default() };
            self.runtime.undo(&self.session, selection, options)
        };
        Ok(done_json(&done?))
    }
}

/// `GET /api/changes/ID`
pub(crate) fn one(
    logs: &OperatorLogs,
    operator: &dyn Operator,
    id: &str,
) -> Result<Value, ApiError> {
    let place = ChangeWorkspace::of(logs, operator, id)?;
    let log = place.runtime.change_log()?;
    let change = log.find(place.id)?;
    let (diffs, is_cut) = place.runtime.file_diffs(change);
    // Hunks may have been undone one by one until none was left.
    let has_more = is_cut || !change.not_kept.is_empty() || !change.directories.is_empty();
    let all_files = !diffs.is_empty() && !has_more && diffs.iter().all(|file| file.undone);
    let undone = change.undone || all_files;
    let mut files: Vec<Value> = diffs.iter().map(file_json).collect();
    let not_kept = change.not_kept.iter().map(|path| {
        json!({
            "path": path, "kind": "modified", "hunks": [],
            "not_kept": "its previous state is not stored, so Undo does not restore it",
        })
    });
    files.extend(not_kept);
    let modes = change.modes.iter().map(|path| {
        json!({
            "path": path, "kind": "modified", "hunks": [],
            "not_kept": "only the mode of this directory was changed, which Undo does not restore",
        })
    });
    files.extend(modes);
    let mut answer = json!({
        "id": change.id.to_string(),
        "tool": change.tool,
        "at": change.time_ms,
        "workspace": place.path,
        "summary": change.summary(),
        "undone": undone,
        "undone_in_part": change.undone_in_part && !undone,
        "undoes": ids(&change.undoes),
        "undone_by": undone_by(&log.changes, change),
        "files": files,
        "undo": undo_preview(&place, change),
    });
    if is_cut {
        answer["cut"] = json!(["files"]);
    }
    if let Some(command) = &change.command {
        answer["command"] = command.clone().into();
    }
    Ok(answer)
}

/// `POST /api/changes/ID/undo`
pub(crate) fn undo(
    logs: &OperatorLogs,
    operator: &dyn Operator,
    id: &str,
    body: UndoBody,
) -> Result<Value, ApiError> {
    let part = match (body.paths, body.hunk) {
        (Some(_), Some(_)) => return Err(ApiError::invalid("Give `paths` or `hunk`, not both.")),
        (Some(paths), None) if paths.is_empty() || paths.len() > MAX_PATHS => {
            return Err(ApiError::invalid("`paths` has 1 to 500 paths."));
        }
        (Some(paths), None) => UndoPart::Paths(paths),
        (None, Some(Hunk { path, index })) => UndoPart::Hunk { path, index },
        (None, None) => UndoPart::Whole,
    };
    let place = ChangeWorkspace::of(logs, operator, id)?;
    place.undo(part, place.id, body.dry_run)
}

/// `POST /api/changes/ID/redo`: reverts the last undo of a change, or the undo itself if the id is that of one.
pub(crate) fn redo(
    logs: &OperatorLogs,
    operator: &dyn Operator,
    id: &str,
    body: &UndoBody,
) -> Result<Value, ApiError> {
    if body.paths.is_some() || body.hunk.is_some() {
        return Err(ApiError::invalid("An undo is redone as a whole."));
    }
    let place = ChangeWorkspace::of(logs, operator, id)?;
    let log = place.runtime.change_log()?;
    let change = log.find(place.id)?;
    let undo = if change.is_undo {
        change.id
    } else {
        let undos = undos_of(&log.changes, change);
        let nothing = || ApiError::conflict(format!("Change {id} is not undone."));
        undos.last().ok_or_else(nothing)?
    };
    place.undo(UndoPart::Whole, undo, body.dry_run)
}

/// The undos of a change that are in effect, oldest first.
fn undos_of<'a>(
    changes: &'a [HistoryEntry],
    change: &'a HistoryEntry,
) -> impl Iterator<Item = u64> + use<'a> {
    let is_undo = move |other: &&HistoryEntry| {
        let is_of = other.undoes.contains(&change.id) || other.hunk_of == Some(change.id);
        is_of && !other.undone
    };
    changes.iter().filter(is_undo).map(|other| other.id)
}

fn undone_by(changes: &[HistoryEntry], change: &HistoryEntry) -> Vec<String> {
    undos_of(changes, change).map(|id| id.to_string()).collect()
}

fn ids(ids: &[u64]) -> Vec<String> {
    ids.iter().map(u64::to_string).collect()
}

fn file_json(file: &FileDiff) -> Value {
    let mut answer = json!({
        "path": file.path,
        "kind": file.kind,
        "undone": file.undone,
        "undone_hunks": file.undone_hunks,
        "hunks": file.hunks.iter().map(hunk_json).collect::<Vec<_>>(),
    });
    if file.is_cut {
        answer["cut"] = true.into();
    }
    if file.is_binary {
        answer["binary"] = true.into();
    }
    if let Some(problem) = &file.problem {
        answer["not_kept"] = problem.clone().into();
    }
    answer
}

fn hunk_json(hunk: &LineHunk) -> Value {
    let line = |line: &NumberedLine| {
        let mut value = json!({"kind": line.sign.to_string(), "text": line.text});
        if let Some(old) = line.old {
            value["old"] = old.into();
        }
        if let Some(new) = line.new {
            value["new"] = new.into();
        }
        if line.is_cut {
            value["cut"] = true.into();
        }
        value
    };
    json!({"header": hunk.header, "lines": hunk.lines.iter().map(line).collect::<Vec<_>>()})
}

/// What Undo would do now.
fn undo_preview(place: &ChangeWorkspace, change: &HistoryEntry) -> Value {
    let whole = UndoSelection { id: change.id, part: UndoPart::Whole };
    let (possible, text) = match place.runtime.preview_undo(&place.session, whole) {
        Ok(reply) => (true, reply.output().to_owned()),
        Err(error) => (false, error.text()),
    };
    // Its error is that of the whole, which is shown.
    let files = place.runtime.preview_undo_of_files(&place.session, change.id).unwrap_or_default();
    let file = |FileUndo { path, result }: &FileUndo| {
        let (result, text, later) = match result {
            FileUndoResult::Restored => {
                ("restored", "gets its content from before the change", &[][..])
            }
            FileUndoResult::Deleted => ("deleted", "the change created it", &[][..]),
            FileUndoResult::Merged => ("merged", "later changes are kept", &[][..]),
            FileUndoResult::Unchanged => ("unchanged", "stays as it is", &[][..]),
            FileUndoResult::Conflict { why, later } => ("conflict", why.as_str(), later.as_slice()),
        };
        json!({"path": path, "result": result, "text": text, "later": ids(later)})
    };
    let files: Vec<Value> = files.iter().map(file).collect();
    json!({"possible": possible, "text": text, "files": files})
}

fn done_json(reply: &Reply) -> Value {
    let mut answer = json!({"text": reply.output(), "diff": reply.diff_text()});
    if let Some(change) = reply.metadata().get("change").and_then(Value::as_u64) {
        answer["change"] = change.to_string().into();
    }
    answer
}
