//! What was done, as people and models read it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use toolcrib_fs::{
    Changes, DamagedChanges, Entry, FileChange, Journal, KeptPath, Place, ReadFile, Version,
};
use toolcrib_text::{Diff, unified_diff};

use crate::error::{Error, ErrorKind};
use crate::runtime::Runtime;
use crate::session::Session;
use crate::words::counted;

/// A change that was made in this workspace.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    /// Its number.
    pub id: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The tool that made it.
    pub tool: String,
    /// The rule that allowed it.
    pub rule: String,
    /// The changes that it takes back.
    pub undoes: Vec<u64>,
    /// Whether a later change has taken it back.
    pub undone: bool,
    /// Whether it takes back changes, and not undos: an undo, and not a redo.
    pub is_undo: bool,
    /// The files that it changed.
    pub files: Vec<HistoryFile>,
    pub(crate) entry: Entry,
}

/// What the journal has of this workspace.
#[derive(Debug, Clone)]
pub struct ChangeLog {
    /// The changes that were made and can be read, the oldest first.
    pub changes: Vec<HistoryEntry>,
    /// Those that cannot be read any more, the oldest first. Of which workspace they were is not known.
    pub damaged: Vec<DamagedChanges>,
}

impl ChangeLog {
    /// A change by its number.
    pub fn find(&self, id: u64) -> Result<&HistoryEntry, Error> {
        if let Some(damaged) = self.damaged.iter().find(|damaged| damaged.ids.contains(&id)) {
            return Err(Error::new(ErrorKind::Io, damaged.to_string())
                .hint("Nothing was done. What it changed is not known any more, so it can be neither shown nor taken back."));
        }
        let found = self.changes.iter().find(|change| change.id == id);
        found
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no change {id} here")))
    }
}

/// A file that a change has changed.
#[derive(Debug, Clone)]
pub struct HistoryFile {
    /// Its path, as replies show it.
    pub path: String,
    /// `created`, `changed` or `deleted`.
    pub action: &'static str,
    /// The hashes before and after, in their short form; nothing where there was no file.
    pub hashes: (Option<String>, Option<String>),
}

impl Runtime {
    /// The changes that were made in this workspace and are still known, the oldest first.
    pub fn history(&self) -> Result<Vec<HistoryEntry>, Error> {
        Ok(self.change_log()?.changes)
    }

    /// The same, with the changes that are damaged.
    pub fn change_log(&self) -> Result<ChangeLog, Error> {
        self.changes_known(|file| self.workspace().seen_path(file), |_| false)
    }

    /// The same, with what a session has changed in its own directories and outside the workspace.
    pub(crate) fn session_changes(&self, session: &Session) -> Result<ChangeLog, Error> {
        let workspace = self.workspace().with(session.opened_roots().iter().cloned());
        self.changes_known(|file| workspace.seen_path(file), |id| session.made_outside(id))
    }

    /// The changes of files that are seen at a path, or that were made outside, with these paths.
    fn changes_known(
        &self,
        seen_path: impl Fn(&Path) -> Option<PathBuf>,
        made_outside: impl Fn(u64) -> bool,
    ) -> Result<ChangeLog, Error> {
        let Changes { entries, damaged } =
            self.journal_there()?.changes().map_err(|error| journal_error(&error))?;
        // From the newest back: what a change that stands takes back, does not stand.
        let mut undone: HashSet<u64> = HashSet::new();
        for entry in entries.iter().rev() {
            if !undone.contains(&entry.id) {
                undone.extend(&entry.about.undoes);
            }
        }
        let (mut undos, mut here) = (HashSet::<u64>::new(), HashSet::<u64>::new());
        let mut history = Vec::new();
        for entry in entries {
            let is_undo = entry.about.undoes.first().is_some_and(|of| !undos.contains(of));
            if is_undo {
                undos.insert(entry.id);
            }
            // A change without files is an undo of what was so already; it is where that is.
            let is_here = match entry.files.as_slice() {
                [] => entry.about.undoes.iter().any(|of| here.contains(of)),
                files => {
                    made_outside(entry.id)
                        || files.iter().all(|file| seen_path(&file.path()).is_some())
                }
            };
            if is_here {
                here.insert(entry.id);
                let entry = with_paths(entry, &seen_path);
                history.push(self.history_entry(undone.contains(&entry.id), is_undo, entry));
            }
        }
        Ok(ChangeLog { changes: history, damaged })
    }

    /// What a change has changed, as a diff.
    pub fn diff_of(&self, change: &HistoryEntry) -> Result<String, Error> {
        let diffs = change.entry.files.iter().map(|file| Ok(self.file_diff(file)?.text));
        diffs.collect()
    }

    /// How many lines a change has added and removed; nothing, if that is not known any more.
    pub fn lines_of(&self, change: &HistoryEntry) -> Option<(usize, usize)> {
        change.entry.files.iter().try_fold((0, 0), |(added, removed), file| {
            let diff = self.file_diff(file).ok()?;
            Some((added + diff.added, removed + diff.removed))
        })
    }

    /// What all changes that are known, or those since one of them, have changed together: each file as it
    /// was before the first of them, against what it says now.
    pub fn diff_since(&self, since: Option<u64>) -> Result<String, Error> {
        let mut first: BTreeMap<PathBuf, FileChange> = BTreeMap::new();
        for change in self.history()? {
            if since.is_none_or(|since| change.id >= since) {
                for file in change.entry.files {
                    first.entry(file.path()).or_insert(file);
                }
            }
        }
        let top = self.workspace().top();
        let mut diffs = String::new();
        for (path, file) in first {
            let shown = self.show_path(&top, &path);
            let Ok(before) = self.version(file.before) else {
                diffs += &format!("{shown}: what it said before is not kept any more\n");
                continue;
            };
            let read = |place: Place| match place.kind() {
                None => Ok(None),
                Some(_) => ReadFile::open(&place)?.read_all(self.limits().edit_bytes).map(Some),
            };
            let now = match self.workspace().resolve(&top, &path).and_then(read) {
                Ok(now) => now,
                Err(error) => {
                    diffs += &format!("{shown} {}\n", error.detail());
                    continue;
                }
            };
            let line_chars = self.limits().line_chars;
            diffs += &unified_diff(&shown, before.as_deref(), now.as_deref(), line_chars).text;
        }
        Ok(diffs)
    }

    /// A diff of one file of a change.
    fn file_diff(&self, file: &FileChange) -> Result<Diff, Error> {
        let before = self.version(file.before)?;
        let after = self.version(file.after)?;
        let shown = self.show_path(&self.workspace().top(), &file.path());
        let line_chars = self.limits().line_chars;
        Ok(unified_diff(&shown, before.as_deref(), after.as_deref(), line_chars))
    }

    /// What a version of a file said.
    pub(crate) fn version(&self, version: Option<Version>) -> Result<Option<Vec<u8>>, Error> {
        let Some((journal, version)) = self.journal().zip(version) else { return Ok(None) };
        match journal.content(&version).map_err(|error| journal_error(&error))? {
            Some(content) => Ok(Some(content)),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("the content {} is not kept any more", version.hash.short()),
            )
            .hint("The journal keeps what its caps allow; older contents are gone.")),
        }
    }

    /// The journal, which must be there for what is asked.
    pub(crate) fn journal_there(&self) -> Result<&Journal, Error> {
        self.journal().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "there is no journal")
                .hint("The host of this runtime has given it no directory to keep one in.")
        })
    }

    fn history_entry(&self, undone: bool, is_undo: bool, entry: Entry) -> HistoryEntry {
        let top = self.workspace().top();
        let short = |version: &Option<Version>| version.map(|version| version.hash.short());
        let files = entry.files.iter().map(|file| HistoryFile {
            path: self.show_path(&top, &file.path()),
            action: match (&file.before, &file.after) {
                (None, _) => "created",
                (_, None) => "deleted",
                _ => "changed",
            },
            hashes: (short(&file.before), short(&file.after)),
        });
        HistoryEntry {
            id: entry.id,
            time_ms: entry.time_ms,
            tool: entry.about.tool.clone(),
            rule: entry.about.rule.clone(),
            undoes: entry.about.undoes.clone(),
            undone,
            is_undo,
            files: files.collect(),
            entry,
        }
    }
}

/// A change with the paths under which tools find its files.
fn with_paths(entry: Entry, seen_path: &impl Fn(&Path) -> Option<PathBuf>) -> Entry {
    let files = entry.files.iter().map(|file| match seen_path(&file.path()) {
        Some(path) => file.at(&path),
        None => file.clone(),
    });
    let directories = entry.directories.iter().map(|made| match seen_path(&made.path()) {
        Some(path) => KeptPath::new(&path),
        None => made.clone(),
    });
    Entry { files: files.collect(), directories: directories.collect(), ..entry }
}

impl HistoryEntry {
    /// How long ago it was, in words.
    pub fn age(&self) -> String {
        age(self.time_ms)
    }

    /// The arguments of the call that made it, long ones cut.
    pub fn arguments(&self) -> &serde_json::Value {
        &self.entry.about.arguments
    }

    /// What it is, in a line.
    pub fn summary(&self) -> String {
        const NAMED: usize = 3;
        let mut files: Vec<String> = self
            .files
            .iter()
            .take(NAMED)
            .map(|file| match file.action {
                "changed" => file.path.clone(),
                action => format!("{} ({action})", file.path),
            })
            .collect();
        if self.files.len() > NAMED {
            files.push(format!("and {} more", self.files.len() - NAMED));
        }
        let undoes: Vec<String> = self.undoes.iter().map(u64::to_string).collect();
        let of =
            if undoes.is_empty() { String::new() } else { format!(" of {}", undoes.join(", ")) };
        format!("{}{of}: {}", self.tool, files.join(", "))
    }
}

/// How long ago something was, in words.
pub(crate) fn age(time_ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let seconds = (now.saturating_sub(u128::from(time_ms)) / 1000) as u64;
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} ago", counted(seconds / 86_400, "day")),
    }
}

pub(crate) fn journal_error(error: &toolcrib_fs::FsError) -> Error {
    Error::from_fs(&error.path().display().to_string(), error)
}
