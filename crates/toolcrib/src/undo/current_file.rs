//! One file or symlink while changes of it are taken back.

use std::path::Path;

use toolcrib_fs::{Content, FileChange, FileKind, Version};
use toolcrib_text::merge;

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryEntry;
use crate::names::EDIT;
use crate::path_access::require_restorable;

pub(super) const CHANGED_SINCE: &str = "changed since";
pub(super) const DONE_AGAIN: &str = "it would be changed again";

/// What is at a path today, and what is to be there.
pub(super) struct Today {
    pub(super) was: Option<Content>,
    pub(super) now: Option<Content>,
    /// The mode that it is to have, if that may be another.
    mode: Option<u32>,
    standing_mode: Option<u32>,
    /// A directory has the name.
    pub(super) is_directory: bool,
    pub(super) is_protected: bool,
    /// Why it stays as it is.
    pub(super) left: Option<&'static str>,
    shown: String,
}

impl Today {
    pub(super) fn of(cx: &Cx<'_>, path: &Path) -> Result<Today, Error> {
        let place = cx.entry(path)?;
        let is_protected = require_restorable(cx.runtime(), &place).is_err();
        let is_directory = place.kind() == Some(FileKind::Directory);
        let was = if is_directory { None } else { cx.read_entry(&place)? };
        let (now, shown) = (was.clone(), cx.show_real(path));
        let standing_mode = place.mode();
        Ok(Today {
            was,
            now,
            mode: None,
            standing_mode,
            is_directory,
            is_protected,
            left: None,
            shown,
        })
    }

    /// Takes back what a change did. Answers whether later changes were merged.
    pub(super) fn take_back(
        &mut self,
        cx: &Cx<'_>,
        file: &FileChange,
        change: &HistoryEntry,
    ) -> Result<bool, Error> {
        if self.is_protected && !change.undoes.is_empty() {
            self.left = Some(DONE_AGAIN);
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
            self.left = Some(CHANGED_SINCE);
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
                Err(self.conflict(change, format!("it deleted {shown}, which was made anew since")))
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
                            "{shown} has been changed since in the same lines, at line {}",
                            found.line
                        ),
                    )),
                }
            }
        }
    }

    /// The mode that it is to have, if that is another than it has.
    pub(super) fn new_mode(&self) -> Option<u32> {
        let is_file = self.was.as_ref().is_some_and(|was| !was.is_link());
        self.mode.filter(|_| !is_file || self.mode != self.standing_mode)
    }

    /// The refusal to take back a change.
    pub(super) fn conflict(&self, change: &HistoryEntry, what: String) -> Error {
        conflict(Some(change.id), what).with("file_path", self.shown.as_str())
    }
}

pub(super) fn conflict(id: Option<u64>, what: String) -> Error {
    let message = match id {
        Some(id) => format!("change {id} cannot be taken back: {what}"),
        None => format!("nothing can be taken back: {what}"),
    };
    Error::new(ErrorKind::Conflict, message).hint(format!(
        "Nothing was written. Make the change by hand, with {EDIT}, where it is wanted."
    ))
}

/// The mode that a file had before a change, if it has another since.
fn new_mode(file: &FileChange) -> Option<u32> {
    let kind = |version: Version| (version.mode, version.link);
    let before = file.before.filter(|before| !before.link)?;
    (file.after.map(kind) != Some(kind(before))).then_some(before.mode)
}
