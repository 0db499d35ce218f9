//! What was done, as people and models read it.

mod undone;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use toolcrib_fs::{
    Changes, Content, DamagedChanges, Entry, FileChange, FileKind, Journal, KeptDirectory,
    KeptPath, Version, read_entry,
};
use toolcrib_text::{Diff, unified_diff, visible_name};

pub(crate) use self::undone::{TakenBack, taken_back};

use crate::error::{Error, ErrorKind};
use crate::names::Name;
use crate::phrases::{counted, first_of, one_line};
use crate::runtime::Runtime;
use crate::session::Session;

/// Characters of a command that a line of the history shows.
const COMMAND_CHARS: usize = 80;

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
    /// The first line of the command that made it, cut and without secrets.
    pub command: Option<String>,
    /// Whether a command made it, and ignore files leave out all that it changed. A plain Undo passes it over.
    pub only_ignored: bool,
    /// The changes that it takes back.
    pub undoes: Vec<u64>,
    /// The path at which it takes them back, if not everywhere.
    pub only: Option<String>,
    /// Whether later changes have taken it back.
    pub undone: bool,
    /// Whether later changes have taken back a part of it.
    pub undone_in_part: bool,
    /// Whether it takes back changes, and not undos: an undo, and not a redo.
    pub is_undo: bool,
    /// The files and symlinks that it changed.
    pub files: Vec<HistoryFile>,
    /// The directories that it made or removed, with no changed file in them.
    pub directories: Vec<HistoryDirectory>,
    pub(crate) entry: Entry,
    /// What later changes have taken back of it.
    pub(crate) taken_back: TakenBack,
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

/// A directory that a change made or removed.
#[derive(Debug, Clone)]
pub struct HistoryDirectory {
    /// Its path, as replies show it.
    pub path: String,
    /// `made` or `removed`.
    pub action: &'static str,
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
        let is_seen = |entry: &&Entry| {
            made_outside(entry.id) || entry.paths().all(|path| seen_path(&path).is_some())
        };
        let seen: HashSet<u64> = entries.iter().filter(is_seen).map(|entry| entry.id).collect();
        let entries = entries.into_iter().map(|entry| with_paths(entry, &seen_path));
        let entries: Vec<Entry> = entries.collect();
        let mut taken_back = taken_back(&entries, &HashSet::new());
        let (mut undos, mut here) = (HashSet::<u64>::new(), HashSet::<u64>::new());
        let mut history = Vec::new();
        for entry in entries {
            let is_undo = entry.about.undoes.iter().any(|of| !undos.contains(of));
            if is_undo {
                undos.insert(entry.id);
            }
            // A change that changed nothing is an undo of what was so already; it is where that is.
            let is_here = match entry.paths().next() {
                None => entry.about.undoes.iter().any(|of| here.contains(of)),
                Some(_) => seen.contains(&entry.id),
            };
            if is_here {
                here.insert(entry.id);
                let taken_back = taken_back.remove(&entry.id).unwrap_or_default();
                history.push(self.history_entry(taken_back, is_undo, entry));
            }
        }
        Ok(ChangeLog { changes: history, damaged })
    }

    /// What a change has changed, as a diff.
    pub fn diff_of(&self, change: &HistoryEntry) -> Result<String, Error> {
        let diffs = change.entry.files.iter().map(|file| Ok(self.file_diff(file)?.text));
        let directories = change.directories.iter();
        let directories =
            directories.map(|one| Ok(format!("[{} directory {}]\n", one.action, one.path)));
        diffs.chain(directories).collect()
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
            let place = self.workspace().entry(&path);
            let now = match place.as_ref().filter(|place| place.kind() != Some(FileKind::Directory))
            {
                None => None,
                Some(place) => match read_entry(place, self.limits().edit_bytes) {
                    Ok(now) => now,
                    Err(error) => {
                        diffs += &format!("{shown} {}\n", error.detail());
                        continue;
                    }
                },
            };
            let line_chars = self.limits().line_chars;
            diffs += &unified_diff(&shown, before.as_deref(), now.as_deref(), line_chars).text;
        }
        Ok(diffs)
    }

    /// A diff of one file of a change. Of a symlink, the content is its target.
    fn file_diff(&self, file: &FileChange) -> Result<Diff, Error> {
        let before = self.version(file.before)?;
        let after = self.version(file.after)?;
        let shown = self.show_path(&self.workspace().top(), &file.path());
        let line_chars = self.limits().line_chars;
        let mut diff = unified_diff(&shown, before.as_deref(), after.as_deref(), line_chars);
        if [&before, &after].into_iter().flatten().any(Content::is_link) {
            diff.text = format!("[{shown}: the text of a symlink is its target]\n{}", diff.text);
        }
        Ok(diff)
    }

    /// What a version of a file said, or where a symlink led.
    pub(crate) fn version(&self, version: Option<Version>) -> Result<Option<Content>, Error> {
        let Some((journal, version)) = self.journal().zip(version) else { return Ok(None) };
        match journal.content(&version).map_err(|error| journal_error(&error))? {
            Some(content) => Ok(Some(version.content(content))),
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

    fn history_entry(&self, taken_back: TakenBack, is_undo: bool, entry: Entry) -> HistoryEntry {
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
        let directory = |action, path: PathBuf| {
            let path = self.show_path(&top, &path);
            HistoryDirectory { path, action }
        };
        let mut paths: Vec<PathBuf> = entry.files.iter().map(FileChange::path).collect();
        paths.sort_unstable();
        // Those in a directory follow it at once.
        let is_empty = |directory: &PathBuf| {
            let after = paths.partition_point(|path| path <= directory);
            paths.get(after).is_none_or(|path| !path.starts_with(directory))
        };
        let made = entry.directories.iter().map(KeptPath::path).filter(is_empty);
        let removed = entry.removed.iter().map(KeptDirectory::path).filter(is_empty);
        let directories = made.map(|path| directory("made", path));
        let directories = directories.chain(removed.map(|path| directory("removed", path)));
        let only = entry.about.only.as_ref().map(|only| self.show_path(&top, &only.path()));
        HistoryEntry {
            id: entry.id,
            time_ms: entry.time_ms,
            tool: entry.about.tool.clone(),
            rule: entry.about.rule.clone(),
            command: command(&entry),
            only_ignored: entry.only_ignored,
            undoes: entry.about.undoes.clone(),
            only,
            undone: taken_back.is_all_of(&entry),
            undone_in_part: taken_back.is_part_of(&entry),
            is_undo,
            files: files.collect(),
            directories: directories.collect(),
            entry,
            taken_back,
        }
    }
}

/// A change with the paths under which tools find its files.
fn with_paths(entry: Entry, seen_path: &impl Fn(&Path) -> Option<PathBuf>) -> Entry {
    entry.at_paths(|path| seen_path(path).unwrap_or_else(|| path.to_owned()))
}

/// The first line of the command that made a change. Journals of 0.1.0 have it among the arguments alone.
fn command(entry: &Entry) -> Option<String> {
    let of_arguments = || entry.about.arguments.get("command")?.as_str();
    let command = entry.about.command.as_deref().or_else(of_arguments)?;
    Some(visible_name(one_line(command, command.len()).as_bytes()))
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

    /// What it is, in a line: who made it, and what it changed.
    pub fn summary(&self) -> String {
        const NAMED: usize = 3;
        let maker = self.maker();
        if self.only_ignored {
            let ignored = self.files.len() + self.directories.len();
            return format!("{maker}: {}", counted(ignored as u64, "ignored file"));
        }
        let files = self.files.iter().map(|file| match file.action {
            "changed" => file.path.clone(),
            action => format!("{} ({action})", file.path),
        });
        let directories =
            self.directories.iter().map(|one| format!("{} (directory {})", one.path, one.action));
        let all: Vec<String> = files.chain(directories).collect();
        let named = match all.len().saturating_sub(NAMED) {
            0 => all.join(", "),
            more => format!("{}, and {more} more", all[..NAMED].join(", ")),
        };
        format!("{maker}: {named}")
    }

    /// Who made it: the tool, with its command or with the changes that it takes back.
    pub fn maker(&self) -> String {
        const NAMED: usize = 5;
        let mut maker = Name::tool(&self.tool).to_string();
        if let Some(command) = &self.command {
            maker += &format!(" `{}`", one_line(command, COMMAND_CHARS));
        }
        if !self.undoes.is_empty() {
            maker += &format!(" of {}", first_of(&self.undoes, NAMED, u64::to_string));
        }
        match &self.only {
            Some(only) => format!("{maker} at {only}"),
            None => maker,
        }
    }

    /// The files of it that no later change has taken back.
    pub(crate) fn standing_files(&self) -> impl Iterator<Item = &FileChange> {
        self.entry.files.iter().filter(|file| !self.taken_back.has(&file.path()))
    }

    /// Whether something at this path, or beneath it, was changed and not taken back.
    pub(crate) fn stands_at(&self, path: &Path) -> bool {
        let mut paths = self.entry.paths();
        paths.any(|one| one.starts_with(path) && !self.taken_back.has(&one))
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
