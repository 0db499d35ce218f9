//! Undo of a change or a part of it, for host programs.

use serde_json::json;
use toolcrib_fs::About;
use toolcrib_policy::Access;

use crate::cx::Cx;
use crate::decode::Decoded;
use crate::edit_checks::Reader;
use crate::error::Error;
use crate::path_access::Grant;
use crate::reply::Reply;
use crate::request::{Call, Options};
use crate::runtime::Runtime;
use crate::session::Session;
use crate::tool::Tool as _;
use crate::tool_table::Row;
use crate::tools::Undo;
use crate::undo::{ChangesBy, LaterChanges, Plan, Selection, UndoPart, UndoRequest, UndoSelection};

/// Files whose undo is previewed one by one.
const MAX_PREVIEWED: usize = 200;

/// What an undo of one file would do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUndo {
    /// Path of the file, as replies show it.
    pub path: String,
    /// The result.
    pub result: FileUndoResult,
}

/// The result of an undo of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileUndoResult {
    /// It gets its content from before the change.
    Restored,
    /// It is deleted, because the change created it.
    Deleted,
    /// Its later changes are kept.
    Merged,
    /// It has its content from before the change, or is protected.
    Unchanged,
    /// It cannot be undone.
    Conflict {
        /// The reason, as a sentence without its full stop.
        why: String,
        /// Ids of the changes of the file that must be undone before, newest first.
        later: Vec<u64>,
    },
}

impl Runtime {
    /// Undoes a change or a part of it. Recorded and authorized like a call of the Undo tool.
    ///
    /// # Errors
    ///
    /// Fails like [`Runtime::call`]. A conflict with later changes is an error, and nothing is written.
    pub fn undo(
        &self,
        session: &Session,
        selection: UndoSelection,
        options: Options<'_>,
    ) -> Result<Reply, Error> {
        let arguments = match &selection.part {
            UndoPart::Whole => json!({"id": selection.id}),
            UndoPart::Paths(paths) => json!({"id": selection.id, "paths": paths}),
            UndoPart::Hunk { path, index } => {
                json!({"id": selection.id, "path": path, "hunk": index})
            }
        };
        let call = Call::new(Undo::NAME, arguments);
        let decode = |_: &Row| {
            let tool = Box::new(Undo::of(selection.clone()));
            Ok(Decoded { tool, notes: Vec::new() })
        };
        self.call_decoded(session, &call, options, &decode, Reader::Program)
    }

    /// Shows what [`Runtime::undo`] would do now. Nothing is written or recorded.
    ///
    /// # Errors
    ///
    /// Fails if the undo would fail.
    pub fn preview_undo(
        &self,
        session: &Session,
        selection: UndoSelection,
    ) -> Result<Reply, Error> {
        let grant = self.undo_grant(session)?;
        Undo::of(selection).run(&mut self.undo_cx(session, &grant))
    }

    /// Shows for each file of a change what its undo would do now, up to a number of files. Nothing is written or
    /// recorded.
    ///
    /// # Errors
    ///
    /// Fails with kind [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such change.
    pub fn preview_undo_of_files(
        &self,
        session: &Session,
        id: u64,
    ) -> Result<Vec<FileUndo>, Error> {
        let grant = self.undo_grant(session)?;
        let cx = self.undo_cx(session, &grant);
        let log = cx.history().session_changes(session)?;
        let change = log.find(id)?;
        let files = change.effective_files().take(MAX_PREVIEWED);
        let previewed = files.map(|file| {
            let path = file.path();
            let shown = cx.show_real(&path);
            let paths = vec![(vec![path.clone()], shown.clone())];
            let wanted = UndoRequest::Paths { id, paths };
            let result = match Selection::of(&log, wanted, &ChangesBy::All) {
                Err(error) => conflict(&error, Vec::new()),
                Ok(chosen) => match Plan::of(&cx, &chosen, &log, &[]) {
                    Ok(plan) => file_result(&plan),
                    Err(error) => {
                        let later = LaterChanges { log: &log, undone: &chosen, others: &[] };
                        conflict(&error, later.to_undo_first(&path, id))
                    }
                },
            };
            FileUndo { path: shown, result }
        });
        Ok(previewed.collect())
    }

    fn undo_grant(&self, session: &Session) -> Result<Grant, Error> {
        Grant::resolve(&self.services().paths, session, vec![Access::WriteAny])
    }

    /// The context of a dry run.
    fn undo_cx<'a>(&'a self, session: &'a Session, grant: &'a Grant) -> Cx<'a> {
        let options = Options { dry_run: true, ..Options::default() };
        let about = About { tool: Undo::NAME.to_owned(), ..About::default() };
        Cx::begin(self.services(), session, grant, options, about)
    }
}

fn conflict(error: &Error, later: Vec<u64>) -> FileUndoResult {
    FileUndoResult::Conflict { why: error.message().to_owned(), later }
}

/// The result of a plan for one file.
fn file_result(plan: &Plan) -> FileUndoResult {
    match plan.edits.as_slice() {
        [] => FileUndoResult::Unchanged,
        [edit] if edit.now.is_none() => FileUndoResult::Deleted,
        _ if plan.merged.is_empty() => FileUndoResult::Restored,
        _ => FileUndoResult::Merged,
    }
}
