//! Operations that change files and directories, in one journaled change each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_fs::{Content, FileKind, NewMode, ResolvedPath};
use toolcrib_policy::Access;

use super::file_tree::FileTree;
use super::operation::Operation;
use super::{MAX_WRITE_BYTES, WriteOptions};
use crate::cx::{Changed, Cx, EntryChange, FileEdit};
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;

/// Paths of a removal that the journal names.
const MAX_NAMED: usize = 20;

/// The result of an operation that creates or changes a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// Whether the file or directory is new.
    pub is_new: bool,
    /// Id of the change in the journal. `None` if nothing was changed, or without a journal.
    pub change: Option<u64>,
}

/// The result of [`Backend::remove`](super::Backend::remove).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// The number of removed files and directories.
    pub count: usize,
    /// Id of the change in the journal.
    pub change: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) path: PathBuf,
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) options: WriteOptions,
}

impl Operation for Write {
    const TOOL: &'static str = "Write";
    type Output = Written;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "write", "bytes": self.bytes.len()})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Written, Reply), Error> {
        if self.bytes.len() > MAX_WRITE_BYTES {
            let message = format!("the content has more than {MAX_WRITE_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message).hint("Nothing was written."));
        }
        let exactly = self.options.mode.map(|mode| NewMode::Exactly(mode & 0o777));
        let mode = exactly.or(self.options.executable.map(NewMode::Executable));
        let (edits, changed) = cx.edit_files(&[self.path.as_path()], |was| {
            let was = was.first().cloned().flatten();
            let now = match &was {
                Some(was) if self.options.append => [&was[..], &self.bytes].concat(),
                _ => self.bytes.to_vec(),
            };
            let now = Some(Content::from(now));
            let same_mode = || -> Result<bool, Error> {
                let (Some(mode), Some(before)) = (mode, cx.mode(&self.path)?) else {
                    return Ok(mode.is_none());
                };
                Ok(mode.of(before) == before)
            };
            if was == now && same_mode()? {
                return Ok((Vec::new(), Vec::new()));
            }
            let edits = vec![FileEdit { path: self.path.clone(), was, now, mode }];
            Ok((edits.clone(), edits))
        })?;
        let is_new = edits.iter().any(|edit| edit.was.is_none());
        let shown = if cx.dry_run() { edits.as_slice() } else { &[] };
        let preview: String = shown.iter().map(|edit| cx.diff_of(edit)).collect();
        Ok((Written { is_new, change: changed.id }, Reply::new("").diff(preview)))
    }
}

#[derive(Debug, Clone)]
pub(super) struct MakeDirectory {
    pub(super) path: PathBuf,
    pub(super) parents: bool,
    pub(super) exist_ok: bool,
}

impl Operation for MakeDirectory {
    const TOOL: &'static str = "Write";
    type Output = Written;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "mkdir"})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Written, Reply), Error> {
        let shown = cx.show(&self.path)?;
        if self.exist_ok && cx.is_directory(&self.path)? {
            return Ok((Written::default(), Reply::new("")));
        }
        let place = cx.writable_entry(&self.path)?;
        if place.kind().is_some() {
            return Err(exists_error(&shown));
        }
        let has_parent =
            place.parent().is_some_and(|parent| parent.kind() == Some(FileKind::Directory));
        if !self.parents && !has_parent {
            let message = format!("the parent directory of {shown} does not exist");
            return Err(Error::new(ErrorKind::NotFound, message).hint("Nothing was created."));
        }
        let change = EntryChange { needed: vec![(place, None)], ..EntryChange::default() };
        let Changed { id, .. } = cx.change_entries(change)?;
        let preview = format!("create the directory {shown}\n");
        Ok((Written { is_new: true, change: id }, Reply::new("").diff(preview)))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Remove {
    pub(super) path: PathBuf,
    pub(super) recursive: bool,
    pub(super) missing_ok: bool,
}

impl Operation for Remove {
    const TOOL: &'static str = "Write";
    type Output = Removed;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "remove", "recursive": self.recursive})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Removed, Reply), Error> {
        let place = cx.writable_entry(&self.path)?;
        if place.kind().is_none() {
            return if self.missing_ok {
                Ok((Removed::default(), Reply::new("")))
            } else {
                Err(missing_error(&cx.show(&self.path)?))
            };
        }
        let tree = FileTree::read(cx, &place)?;
        if tree.has_entries() && !self.recursive {
            let shown = cx.show(&self.path)?;
            return Err(Error::new(ErrorKind::NotEmpty, format!("{shown} is not empty"))
                .hint("Nothing was removed. Use `recursive` to remove it with its entries."));
        }
        let count = tree.count();
        let preview = if cx.dry_run() { tree.names(cx) } else { String::new() };
        let Changed { id, .. } = cx.change_entries(tree.removal())?;
        Ok((Removed { count, change: id }, Reply::new("").diff(preview)))
    }
}

/// Removes several paths with everything beneath them, as one change.
#[derive(Debug, Clone)]
pub(super) struct RemoveAll {
    pub(super) paths: Vec<PathBuf>,
}

impl Operation for RemoveAll {
    const TOOL: &'static str = "Write";
    type Output = Removed;

    fn arguments(&self) -> Value {
        let names = self.paths.iter().take(MAX_NAMED).map(|path| path.to_string_lossy());
        let (names, count) = (names.collect::<Vec<_>>(), self.paths.len());
        json!({"file_paths": names, "count": count, "raw": "remove", "recursive": true})
    }

    fn access(&self) -> Vec<Access> {
        self.paths.iter().cloned().map(Access::Write).collect()
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Removed, Reply), Error> {
        let places = self.paths.iter().map(|path| cx.writable_entry(path));
        let places: Vec<ResolvedPath> = places.collect::<Result<_, _>>()?;
        let Some(tree) = FileTree::read_all(cx, &places)? else {
            return Ok((Removed::default(), Reply::new("")));
        };
        let count = tree.count();
        let preview = if cx.dry_run() { tree.names(cx) } else { String::new() };
        let Changed { id, .. } = cx.change_entries(tree.removal())?;
        Ok((Removed { count, change: id }, Reply::new("").diff(preview)))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Move {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    pub(super) overwrite: bool,
}

impl Operation for Move {
    const TOOL: &'static str = "Write";
    type Output = Written;

    fn arguments(&self) -> Value {
        json!({
            "file_path": self.to.to_string_lossy(),
            "raw": "move",
            "from": self.from.to_string_lossy(),
        })
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Write(self.from.clone()), Access::Write(self.to.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Written, Reply), Error> {
        let (from, to) = (cx.writable_entry(&self.from)?, cx.writable_entry(&self.to)?);
        let shown = |path: &Path| cx.show(path);
        if from.kind().is_none() {
            return Err(missing_error(&shown(&self.from)?));
        }
        if from.path() == to.path() {
            return Ok((Written::default(), Reply::new("")));
        }
        if to.is_within(&from) {
            let message = format!("{} is beneath {}", shown(&self.to)?, shown(&self.from)?);
            return Err(Error::invalid(message).hint("Nothing was moved."));
        }
        let replaces = match to.kind() {
            None => None,
            Some(FileKind::Directory) => return Err(exists_error(&shown(&self.to)?)),
            Some(_) if !self.overwrite => return Err(exists_error(&shown(&self.to)?)),
            Some(_) if from.kind() == Some(FileKind::Directory) => {
                return Err(exists_error(&shown(&self.to)?));
            }
            Some(_) => cx.entry_content(&to)?,
        };
        let is_new = replaces.is_none();
        let overwrites = if is_new { "" } else { ", which is overwritten" };
        let preview = format!("move {} to {}{overwrites}\n", shown(&self.from)?, shown(&self.to)?);
        let change = FileTree::read(cx, &from)?.moved_to(cx, &to, replaces)?;
        let Changed { id, .. } = cx.change_entries(change)?;
        Ok((Written { is_new, change: id }, Reply::new("").diff(preview)))
    }
}

fn exists_error(shown: &str) -> Error {
    Error::new(ErrorKind::Exists, format!("{shown} exists")).hint("Nothing was changed.")
}

fn missing_error(shown: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{shown} does not exist")).hint("Nothing was changed.")
}
