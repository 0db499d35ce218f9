//! Taking changes back, on today's files.
//!
//! A change is taken back as an inverse patch: where a file is as the change left it, it gets back what
//! it said before; where somebody has changed it since, the two are merged line by line, so that their
//! work stays. Where both touch the same lines there is no answer, and nothing is written.
//!
//! A protected file gets back what it said before the change, byte by byte, and nothing else: it is not merged,
//! it does not get back what an earlier change wrote, and what was taken back is not done again. Otherwise it
//! is left as it is, and the rest is taken back without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, FileChange, NewMode, Version};
use toolcrib_policy::Effect;
use toolcrib_text::merge;

use crate::cx::{Cx, FileEdit};
use crate::error::{Error, ErrorKind};
use crate::grant::resolve;
use crate::history::HistoryEntry;

/// What would be written, all at once.
pub(crate) struct Plan {
    pub(crate) edits: Vec<FileEdit>,
    pub(crate) undoes: Vec<u64>,
    /// Directories that the changes had made.
    pub(crate) directories: Vec<PathBuf>,
    /// Files in which the work of others was kept.
    pub(crate) merged: Vec<String>,
    /// Protected files that get back what they said before.
    pub(crate) restored: Vec<PathBuf>,
    /// Protected files that stay as they are, and why.
    pub(crate) left: Vec<(String, &'static str)>,
}

/// What a file says today, and what it is to say.
struct Today {
    was: Option<Content>,
    now: Option<Content>,
    mode: Option<u32>,
    is_protected: bool,
    /// Why it stays as it is.
    left: Option<&'static str>,
}

const CHANGED_SINCE: &str = "changed since";
const DONE_AGAIN: &str = "it would be changed again";
const MADE_BY_CHANGE: &str = "what it said before was written by an earlier change";

impl Plan {
    /// Takes back these changes, given from the newest to the oldest, of all that are known.
    pub(crate) fn of(
        cx: &Cx<'_>,
        changes: &[HistoryEntry],
        known: &[HistoryEntry],
    ) -> Result<Plan, Error> {
        let mut files: BTreeMap<PathBuf, Today> = BTreeMap::new();
        let mut merged = Vec::new();
        for change in changes {
            for file in &change.entry.files {
                let path = file.path();
                if !files.contains_key(&path) {
                    files.insert(path.clone(), Today::of(cx, &path)?);
                }
                let shown = cx.show(&path)?;
                if let Some(today) = files.get_mut(&path)
                    && today.take_back(cx, file, change, &shown)?
                    && !merged.contains(&shown)
                {
                    merged.push(shown);
                }
            }
        }
        let mut plan = Plan {
            edits: Vec::new(),
            undoes: changes.iter().map(|change| change.id).collect(),
            directories: Vec::new(),
            merged,
            restored: Vec::new(),
            left: Vec::new(),
        };
        let directories = changes.iter().rev().flat_map(|change| &change.entry.directories);
        plan.directories.extend(directories.map(|directory| directory.path()));
        for (path, today) in files {
            plan.add(cx, path, today, known)?;
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        cx: &Cx<'_>,
        path: PathBuf,
        today: Today,
        known: &[HistoryEntry],
    ) -> Result<(), Error> {
        let changes = today.was != today.now || today.mode.is_some();
        if today.is_protected && (changes || today.left.is_some()) {
            match today.left.or_else(|| made_by_change(&path, today.now.as_ref(), known)) {
                Some(why) => {
                    self.left.push((cx.show(&path)?, why));
                    return Ok(());
                }
                None => self.restored.push(path.clone()),
            }
        }
        if changes {
            let mode = today.mode.map(NewMode::Exactly);
            self.edits.push(FileEdit { path, was: today.was, now: today.now, mode });
        }
        Ok(())
    }
}

/// Why a protected file does not get a content back: a change had put it there, which the protection is to
/// prevent.
fn made_by_change(
    path: &Path,
    content: Option<&Content>,
    known: &[HistoryEntry],
) -> Option<&'static str> {
    let hash = content?.hash();
    let made = |change: &HistoryEntry| {
        let is_it = |file: &FileChange| {
            file.after.is_some_and(|after| after.hash == hash) && file.path() == path
        };
        change.undoes.is_empty() && change.entry.files.iter().any(is_it)
    };
    known.iter().any(made).then_some(MADE_BY_CHANGE)
}

impl Today {
    fn of(cx: &Cx<'_>, path: &Path) -> Result<Today, Error> {
        let writable = resolve(cx.runtime(), cx.session(), Effect::Write, path);
        let is_protected =
            writable.is_err_and(|error| Error::from(error).kind() == ErrorKind::Protected);
        let was = cx.read(path)?;
        Ok(Today { now: was.clone(), was, mode: None, is_protected, left: None })
    }

    /// Takes back what a change did to the file. Answers whether the work of somebody else was merged.
    fn take_back(
        &mut self,
        cx: &Cx<'_>,
        file: &FileChange,
        change: &HistoryEntry,
        shown: &str,
    ) -> Result<bool, Error> {
        let id = change.id;
        let mode = |version: Option<Version>| version.map(|version| version.mode);
        let hash = |version: Option<Version>| version.map(|version| version.hash);
        let standing = self.now.as_ref().map(Content::hash);
        if self.is_protected && !change.undoes.is_empty() {
            self.left = Some(DONE_AGAIN);
            return Ok(false);
        }
        if standing == hash(file.after) {
            let mode_changed = mode(file.before) != mode(file.after);
            self.mode = mode(file.before).filter(|_| mode_changed).or(self.mode);
            self.now = cx.runtime().version(file.before)?.map(Content::from);
            return Ok(false);
        }
        if standing == hash(file.before) {
            return Ok(false);
        }
        if self.is_protected {
            self.left = Some(CHANGED_SINCE);
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
