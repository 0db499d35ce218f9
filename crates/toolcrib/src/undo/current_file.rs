//! One file or symlink during an undo.

use std::path::Path;

use toolcrib_fs::{Content, FileChange, FileKind, Version};
use toolcrib_text::merge;

use crate::cx::Cx;
use crate::dialect_names::EDIT;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryEntry;
use crate::path_access::require_restorable;

pub(super) const CHANGED_SINCE: &str = "changed since";
pub(super) const DONE_AGAIN: &str = "it would be changed again";

/// Current and planned content of a path.
pub(super) struct CurrentFile {
    pub(super) was: Option<Content>,
    pub(super) now: Option<Content>,
    /// New mode, if it may differ.
    mode: Option<u32>,
    current_mode: Option<u32>,
    /// The path is a directory.
    pub(super) is_directory: bool,
    pub(super) is_protected: bool,
    /// Why the file stays as it is.
    pub(super) kept_reason: Option<&'static str>,
    shown: String,
}

impl CurrentFile {
    pub(super) fn of(cx: &Cx<'_>, path: &Path) -> Result<CurrentFile, Error> {
        let place = cx.entry(path)?;
        let is_protected = require_restorable(cx.runtime(), &place).is_err();
        let is_directory = place.kind() == Some(FileKind::Directory);
        let was = if is_directory { None } else { cx.read_entry(&place)? };
        let (now, shown) = (was.clone(), cx.show_real(path));
        let standing_mode = place.mode();
        Ok(CurrentFile {
            was,
            now,
            mode: None,
            current_mode: standing_mode,
            is_directory,
            is_protected,
            kept_reason: None,
            shown,
        })
    }

    /// Reverts a change in the planned content. Returns whether later changes were merged.
    pub(super) fn revert(
        &mut self,
        cx: &Cx<'_>,
        file: &FileChange,
        change: &HistoryEntry,
    ) -> Result<bool, Error> {
        if self.is_protected && !change.undoes.is_empty() {
            self.kept_reason = Some(DONE_AGAIN);
            return Ok(false);
        }
        if Version::is(file.after, self.now.as_ref()) {
            self.now = cx.runtime().version(file.before)?;
            self.mode = match &self.now {
                Some(now) if !now.is_link() => new_mode(file).or(self.mode),
                _ => None,
            };
            return Ok(false);
        }
        if Version::is(file.before, self.now.as_ref()) {
            return Ok(false);
        }
        if self.is_protected {
            self.kept_reason = Some(CHANGED_SINCE);
            return Ok(false);
        }
        let shown = &self.shown;
        let before = cx.runtime().version(file.before)?;
        let after = cx.runtime().version(file.after)?;
        match (&before, &self.now, &after) {
            _ if self.is_directory => {
                Err(self.conflict(change, format!("{shown} is a directory now")))
            }
            (None, Some(_), _) => {
                Err(self.conflict(change, format!("it created {shown}, which was changed since")))
            }
            (_, None, _) => Err(self.conflict(change, format!("{shown} is gone"))),
            (_, Some(_), None) => {
                Err(self
                    .conflict(change, format!("it deleted {shown}, which was created again since")))
            }
            (Some(before), Some(now), Some(after)) => {
                if [before, now, after].into_iter().any(Content::is_link) {
                    let what = format!("{shown} was changed since, and is or was a symlink");
                    return Err(self.conflict(change, what));
                }
                match merge(after, now, before) {
                    Ok(both) => {
                        self.now = Some(both.into());
                        Ok(true)
                    }
                    Err(found) => Err(self.conflict(
                        change,
                        format!(
                            "the same lines of {shown} were changed since, at line {}",
                            found.line
                        ),
                    )),
                }
            }
        }
    }

    /// New mode, if it differs from the current one.
    pub(super) fn new_mode(&self) -> Option<u32> {
        let is_file = self.was.as_ref().is_some_and(|was| !was.is_link());
        self.mode.filter(|_| !is_file || self.mode != self.current_mode)
    }

    /// The error if a change cannot be reverted.
    pub(super) fn conflict(&self, change: &HistoryEntry, what: String) -> Error {
        conflict(Some(change.id), what).with("file_path", self.shown.as_str())
    }
}

pub(super) fn conflict(id: Option<u64>, what: String) -> Error {
    let message = match id {
        Some(id) => format!("change {id} cannot be undone: {what}"),
        None => format!("nothing can be undone: {what}"),
    };
    Error::new(ErrorKind::Conflict, message)
        .hint(format!("Nothing was written. Use {EDIT} to revert it by hand."))
}

/// Mode before a change, if the change altered it.
fn new_mode(file: &FileChange) -> Option<u32> {
    let kind = |version: Version| (version.mode, version.link);
    let before = file.before.filter(|before| !before.link)?;
    (file.after.map(kind) != Some(kind(before))).then_some(before.mode)
}
