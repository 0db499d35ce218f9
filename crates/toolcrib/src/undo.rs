//! Taking changes back, on today's files.
//!
//! A change is taken back as an inverse patch: where a file is as the change left it, it gets back what
//! it said before; where somebody has changed it since, the two are merged line by line, so that their
//! work stays. Where both touch the same lines there is no answer, and nothing is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolcrib_fs::{Content, FileChange, NewMode, Version};
use toolcrib_text::merge;

use crate::cx::{Cx, FileEdit};
use crate::error::{Error, ErrorKind};
use crate::history::HistoryEntry;

/// What would be written, all at once.
pub(crate) struct Plan {
    pub(crate) edits: Vec<FileEdit>,
    pub(crate) undoes: Vec<u64>,
    /// Directories that the changes had made.
    pub(crate) directories: Vec<PathBuf>,
    /// Files in which the work of others was kept.
    pub(crate) merged: Vec<String>,
}

/// What a file says today, and what it is to say.
struct Today {
    was: Option<Content>,
    now: Option<Content>,
    mode: Option<u32>,
}

impl Plan {
    /// Takes back these changes, given from the newest to the oldest.
    pub(crate) fn of(cx: &Cx<'_>, changes: &[HistoryEntry]) -> Result<Plan, Error> {
        let mut files: BTreeMap<PathBuf, Today> = BTreeMap::new();
        let mut merged = Vec::new();
        for change in changes {
            for file in &change.entry.files {
                let path = file.path();
                if !files.contains_key(&path) {
                    let was = cx.read(&path)?;
                    files.insert(path.clone(), Today { now: was.clone(), was, mode: None });
                }
                let shown = cx.show(&path)?;
                if let Some(today) = files.get_mut(&path)
                    && today.take_back(cx, file, change.id, &shown)?
                    && !merged.contains(&shown)
                {
                    merged.push(shown);
                }
            }
        }
        let edits = files
            .into_iter()
            .filter(|(_, today)| today.was != today.now || today.mode.is_some())
            .map(|(path, today)| FileEdit {
                path,
                was: today.was,
                now: today.now,
                mode: today.mode.map(NewMode::Exactly),
            });
        let undoes = changes.iter().map(|change| change.id).collect();
        let directories = changes.iter().rev().flat_map(|change| &change.entry.directories);
        let directories = directories.map(|directory| directory.path()).collect();
        Ok(Plan { edits: edits.collect(), undoes, directories, merged })
    }
}

impl Today {
    /// Takes back what a change did to the file. Answers whether the work of somebody else was merged.
    fn take_back(
        &mut self,
        cx: &Cx<'_>,
        file: &FileChange,
        id: u64,
        shown: &str,
    ) -> Result<bool, Error> {
        let mode = |version: Option<Version>| version.map(|version| version.mode);
        let hash = |version: Option<Version>| version.map(|version| version.hash);
        let standing = self.now.as_ref().map(Content::hash);
        if standing == hash(file.after) {
            let mode_changed = mode(file.before) != mode(file.after);
            self.mode = mode(file.before).filter(|_| mode_changed).or(self.mode);
            self.now = cx.runtime().version(file.before)?.map(Content::from);
            return Ok(false);
        }
        if standing == hash(file.before) {
            return Ok(false);
        }
        let before = cx.runtime().version(file.before)?;
        let after = cx.runtime().version(file.after)?;
        let conflict = |what: String| {
            Err(Error::new(
                ErrorKind::Conflict,
                format!("change {id} cannot be taken back: {what}"),
            )
            .hint("Nothing was written. Make the change by hand, with Edit, where it is wanted.")
            .with("file_path", shown))
        };
        match (&before, &self.now, &after) {
            (None, Some(_), _) => {
                conflict(format!("it created {shown}, which somebody has changed since"))
            }
            (_, None, _) => conflict(format!("{shown} is gone")),
            (_, Some(_), None) => {
                conflict(format!("it deleted {shown}, which somebody has made anew"))
            }
            (Some(before), Some(now), Some(after)) => match merge(after, now, before) {
                Ok(both) => {
                    self.now = Some(both.into());
                    Ok(true)
                }
                Err(found) => conflict(format!(
                    "{shown} has been changed since in the same lines, at line {}",
                    found.line
                )),
            },
        }
    }
}
