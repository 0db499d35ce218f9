//! One file or symlink during an undo.

use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, FileChange, FileKind, Version};
use toolcrib_policy::Effect;
use toolcrib_text::{merge, without_hunk};

use super::later_changes::LaterChanges;
use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryEntry;
use crate::message_names::{EDIT, HISTORY, KILL_SHELL};
use crate::path_access::require_restorable;

pub(super) const DENIED: &str = "a rule denies changing it";
pub(super) const CHANGED_SINCE: &str = "it was changed since";
pub(super) const DONE_AGAIN: &str = "a redo does not change protected files";

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
    is_denied: bool,
    /// Why the file stays as it is.
    pub(super) kept_reason: Option<&'static str>,
    path: PathBuf,
    shown: String,
}

impl CurrentFile {
    pub(super) fn of(cx: &Cx<'_>, path: &Path) -> Result<CurrentFile, Error> {
        let place = cx.entry(path)?;
        let is_protected = require_restorable(cx.paths(), &place).is_err();
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
            // The reply shows the changes, so the file must also be readable.
            is_denied: cx.denies(Effect::Write, path) || cx.denies(Effect::Read, path),
            kept_reason: None,
            path: path.to_owned(),
            shown,
        })
    }

    /// Reverts a change in the planned content. Returns whether later changes were merged.
    pub(super) fn revert(
        &mut self,
        cx: &Cx<'_>,
        file: &FileChange,
        change: &HistoryEntry,
        later: &LaterChanges<'_>,
    ) -> Result<bool, Error> {
        if self.is_denied {
            // Nothing in it is compared or merged: a conflict would show a part of it.
            let has_mode = new_mode(file).is_none_or(|mode| self.current_mode == Some(mode));
            if !(Version::is(file.before, self.was.as_ref()) && has_mode) {
                self.kept_reason = Some(DENIED);
            }
            return Ok(false);
        }
        if self.is_protected && !change.undoes.is_empty() {
            self.kept_reason = Some(DONE_AGAIN);
            return Ok(false);
        }
        if Version::is(file.after, self.now.as_ref()) {
            self.now = cx.history().version(file.before)?;
            self.mode = match &self.now {
                Some(now) if !now.is_link() => new_mode(file).or(self.mode),
                _ => None,
            };
            return Ok(false);
        }
        if Version::is(file.before, self.now.as_ref()) {
            // A file that the change created may have been moved: then its content is still there.
            let created = file.after.filter(|_| file.before.is_none() && !self.is_directory);
            let exists = |path: &Path| cx.entry(path).is_ok_and(|place| place.kind().is_some());
            let moved = created.and_then(|after| later.moved(&self.path, change.id, after, exists));
            if let Some((by, to)) = moved {
                return Err(self.moved(change, later, by, &cx.show_real(&to)));
            }
            self.revert_mode(file);
            return Ok(false);
        }
        if self.is_protected {
            self.kept_reason = Some(CHANGED_SINCE);
            return Ok(false);
        }
        let before = cx.history().version(file.before)?;
        let after = cx.history().version(file.after)?;
        let conflict = |obstacle| Err(self.conflict(cx, change, later, obstacle));
        match (&before, &self.now, &after) {
            _ if self.is_directory => conflict(Obstacle::Directory),
            (None, Some(_), _) => conflict(Obstacle::Created),
            (_, None, _) => conflict(Obstacle::Gone),
            (_, Some(_), None) => conflict(Obstacle::Recreated),
            (Some(before), Some(now), Some(after)) => {
                if [before, now, after].into_iter().any(Content::is_link) {
                    return conflict(Obstacle::Symlink);
                }
                match merge(after, now, before) {
                    Ok(both) => {
                        self.now = Some(both.into());
                        self.revert_mode(file);
                        Ok(true)
                    }
                    Err(found) => conflict(Obstacle::SameLines(found.line)),
                }
            }
        }
    }

    /// Reverts the mode of a file whose content was changed since, if the mode was not.
    fn revert_mode(&mut self, file: &FileChange) {
        let (Some(before), Some(after)) = (new_mode(file), file.after) else { return };
        if !self.is_protected && self.mode.or(self.current_mode) == Some(after.mode) {
            self.mode = Some(before);
        }
    }

    /// Reverts one hunk of a change in the planned content. Returns whether later changes were merged.
    pub(super) fn revert_hunk(
        &mut self,
        cx: &Cx<'_>,
        file: &FileChange,
        (change, index): (&HistoryEntry, usize),
        later: &LaterChanges<'_>,
    ) -> Result<bool, Error> {
        if self.is_denied {
            self.kept_reason = Some(DENIED);
            return Ok(false);
        }
        let versions =
            (cx.history().version(file.before)?, cx.history().version(file.after)?, &self.now);
        let (Some(before), Some(after), Some(now)) = versions else {
            return Err(self.no_hunks("was created or deleted, so it has no hunks of its own"));
        };
        if [&before, &after, now].into_iter().any(Content::is_link) || self.is_protected {
            return Err(self.no_hunks("is a symlink or protected"));
        }
        let Some(without) = without_hunk(&before, &after, index) else {
            return Err(self.no_hunks("has no such hunk, or its encoding lacks a character of it"));
        };
        let merged = merge(&after, now, &without)
            .map_err(|found| self.conflict(cx, change, later, Obstacle::SameLines(found.line)))?;
        if merged == **now {
            let number = index + 1;
            let message = format!("hunk {number} of {} is already undone", self.shown);
            return Err(Error::new(ErrorKind::AlreadyApplied, message).nothing_written());
        }
        let is_merged = !Version::is(file.after, self.now.as_ref());
        self.now = Some(merged.into());
        Ok(is_merged)
    }

    /// The error if a file that a change created is elsewhere now.
    fn moved(&self, change: &HistoryEntry, later: &LaterChanges<'_>, by: u64, to: &str) -> Error {
        let (id, shown) = (change.id, &self.shown);
        let message = format!(
            "change {id} cannot be undone: it created {shown}, which change {by} moved to {to}"
        );
        let hint = later.hint(&self.path, id).unwrap_or_default();
        Error::new(ErrorKind::Conflict, message)
            .hint(format!("Nothing was written. {hint}"))
            .with("file_path", shown.as_str())
    }

    fn no_hunks(&self, why: &str) -> Error {
        Error::invalid(format!("{} {why}", self.shown))
            .hint("Nothing was written. Revert the whole file instead.")
    }

    /// New mode, if it differs from the current one.
    pub(super) fn new_mode(&self) -> Option<u32> {
        let is_file = self.was.as_ref().is_some_and(|was| !was.is_link());
        self.mode.filter(|_| !is_file || self.mode != self.current_mode)
    }

    /// The error if a change cannot be reverted. The hint has the simplest way that works.
    fn conflict(
        &self,
        cx: &Cx<'_>,
        change: &HistoryEntry,
        later: &LaterChanges<'_>,
        obstacle: Obstacle,
    ) -> Error {
        let (id, shown) = (change.id, &self.shown);
        let what = match obstacle {
            Obstacle::Directory => format!("{shown} is a directory now"),
            Obstacle::Created => format!("it created {shown}, which was changed since"),
            Obstacle::Gone => format!("{shown} no longer exists"),
            Obstacle::Recreated => format!("it deleted {shown}, which was created again since"),
            Obstacle::Symlink => format!("{shown} was changed since, and is or was a symlink"),
            Obstacle::SameLines(line) => {
                format!("the same lines of {shown} were changed since, at line {line}")
            }
        };
        let job = cx.session().shell().and_then(|shell| shell.job_changing(&self.path));
        let hint = match (job, later.hint(&self.path, id), obstacle) {
            (Some(job), ..) => {
                format!(
                    "{job} still runs and may be writing it: {KILL_SHELL} {job}, then undo again."
                )
            }
            (None, Some(later), _) => later,
            (None, None, Obstacle::Created) => {
                format!("To remove {shown} anyway, delete it with a command.")
            }
            (None, None, Obstacle::Directory) => format!("Move {shown} away, then undo again."),
            (None, None, Obstacle::SameLines(_)) => {
                format!("{HISTORY} with id {id} shows its diff; revert it with {EDIT}.")
            }
            (None, None, Obstacle::Gone | Obstacle::Recreated | Obstacle::Symlink) => {
                format!("{HISTORY} with id {id} shows its diff.")
            }
        };
        Error::new(ErrorKind::Conflict, format!("change {id} cannot be undone: {what}"))
            .hint(format!("Nothing was written. {hint}"))
            .with("file_path", shown.as_str())
    }
}

/// Why a change of a file cannot be reverted.
#[derive(Clone, Copy)]
enum Obstacle {
    /// The path is a directory.
    Directory,
    /// The change created the file, and its content differs now.
    Created,
    /// The file does not exist.
    Gone,
    /// The change deleted the file, and it exists.
    Recreated,
    /// A version is a symlink, which is not merged.
    Symlink,
    /// Later changes overlap, at this line.
    SameLines(u64),
}

/// Mode before a change, if the change altered it.
fn new_mode(file: &FileChange) -> Option<u32> {
    let kind = |version: Version| (version.mode, version.link);
    let before = file.before.filter(|before| !before.link)?;
    (file.after.map(kind) != Some(kind(before))).then_some(before.mode)
}
