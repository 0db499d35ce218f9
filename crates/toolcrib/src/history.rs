//! The changes in the journal, for people and models.

mod file_diffs;
mod ignored_files;
mod undone;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_fs::{
    Changes, Content, DamagedChanges, Entry, FileChange, FileKind, Journal, KeptDirectory,
    KeptPath, Version, read_entry,
};
use toolcrib_text::{Diff, unified_diff, visible_name};

pub use self::file_diffs::FileDiff;
pub(crate) use self::ignored_files::IgnoredFiles;
pub(crate) use self::undone::{UndoneParts, undone_parts};

use crate::error::{Error, ErrorKind};
use crate::ignored_directories::IgnoredDirectories;
use crate::journal_errors::{journal_error, require_journal};
use crate::limits::Limits;
use crate::message_names::Name;
use crate::phrases::{age, counted, first_of, one_line};
use crate::reachable_paths::Paths;
use crate::session::Session;

/// The lines of a change are counted up to this many bytes: `toolcrib log` counts those of every change it shows.
pub(crate) const MAX_COUNTED_BYTES: u64 = 2 << 20;

/// Files of a change that a line of the history names.
const NAMED_FILES: usize = 3;

/// Characters of a command in a line of the history.
const COMMAND_CHARS: usize = 80;

/// A change in this workspace.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    /// Id of the change.
    pub id: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Name of the tool.
    pub tool: String,
    /// Name of the rule that allowed it.
    pub rule: String,
    /// First line of the command, truncated and with secrets masked. `None` if no command made the change.
    pub command: Option<String>,
    /// Whether a command made the change and all changed files are ignored by ignore files. Undo without an id
    /// skips such a change.
    pub only_ignored: bool,
    /// Ids of the changes that this one reverts.
    pub undoes: Vec<u64>,
    /// Ids of the changes that it redoes by reverting their undo.
    pub redoes: Vec<u64>,
    /// Id of the change of which it reverts one hunk.
    pub hunk_of: Option<u64>,
    /// Path at which it reverts them. `None` if everywhere.
    pub only: Option<String>,
    /// Whether it has been undone completely.
    pub undone: bool,
    /// Whether it has been undone in part.
    pub undone_in_part: bool,
    /// Whether it is an undo. A redo, which reverts an undo, is not.
    pub is_undo: bool,
    /// Changed files and symlinks. If there are many, those in ignored directories come last.
    pub files: Vec<HistoryFile>,
    /// Created or removed directories that contain no changed file.
    pub directories: Vec<HistoryDirectory>,
    /// Paths that it changed and whose previous state is not stored: Undo does not restore them.
    pub not_kept: Vec<String>,
    /// Directories whose mode it changed: Undo does not restore it.
    pub modes: Vec<String>,
    /// Whether it also changed paths outside the roots, which are left out here.
    pub is_partial: bool,
    /// How many of the files, the last ones, are in ignored directories. 0 if all files fit in a line.
    pub(crate) ignored_files: usize,
    pub(crate) entry: Entry,
    /// The undone parts.
    pub(crate) undone_parts: UndoneParts,
}

/// The changes of this workspace.
#[derive(Debug, Clone)]
pub struct ChangeLog {
    /// Readable changes, oldest first.
    pub changes: Vec<HistoryEntry>,
    /// Unreadable changes, oldest first. They may belong to another workspace.
    pub damaged: Vec<DamagedChanges>,
    /// The oldest change that the journal still has, of any workspace.
    pub(crate) oldest: Option<u64>,
    /// Changes of other workspaces, each with the directory of its first file.
    pub(crate) elsewhere: BTreeMap<u64, PathBuf>,
}

impl ChangeLog {
    /// The directory in which a change of another workspace changed a file. It is for the user of all workspaces, not
    /// for an agent in one of them.
    pub fn directory_elsewhere(&self, id: u64) -> Option<&Path> {
        self.elsewhere.get(&id).map(PathBuf::as_path)
    }

    /// Returns the change with this id.
    ///
    /// # Errors
    ///
    /// Fails with kind [`ErrorKind::NotFound`] if there is none, and with [`ErrorKind::Io`] if it is damaged.
    pub fn find(&self, id: u64) -> Result<&HistoryEntry, Error> {
        if let Some(damaged) = self.damaged.iter().find(|damaged| damaged.ids.contains(&id)) {
            return Err(Error::new(ErrorKind::Io, damaged.to_string()).hint(
                "Nothing was done. Its record is lost, so it can be neither shown nor undone.",
            ));
        }
        let found = self.changes.iter().find(|change| change.id == id);
        found.ok_or_else(|| match self.oldest {
            Some(oldest) if (1..oldest).contains(&id) => {
                let message = format!("change {id} is no longer in the journal");
                Error::new(ErrorKind::NotFound, message).hint(format!(
                    "The journal has limits of size and age, and drops its oldest changes. The oldest one that it has is {oldest}."
                ))
            }
            _ => {
                let message = format!("there is no change {id} in this workspace");
                Error::new(ErrorKind::NotFound, message)
            }
        })
    }
}

/// A file of a change.
#[derive(Debug, Clone)]
pub struct HistoryFile {
    /// Path, as replies show it.
    pub path: String,
    /// `created`, `changed` or `deleted`.
    pub action: &'static str,
    /// Short hashes before and after. `None` if the file did not exist.
    pub hashes: (Option<String>, Option<String>),
}

/// A directory of a change.
#[derive(Debug, Clone)]
pub struct HistoryDirectory {
    /// Path, as replies show it.
    pub path: String,
    /// `made` or `removed`.
    pub action: &'static str,
}

/// The changes of a runtime's workspace, with their contents.
pub(crate) struct History {
    journal: Option<Journal>,
    paths: Arc<Paths>,
    limits: Limits,
}

impl History {
    pub(crate) fn new(journal: Option<Journal>, paths: Arc<Paths>, limits: Limits) -> History {
        History { journal, paths, limits }
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// The journal, or an error if there is none.
    pub(crate) fn require_journal(&self) -> Result<&Journal, Error> {
        require_journal(self.journal())
    }

    /// The changes in the roots.
    pub(crate) fn change_log(&self) -> Result<ChangeLog, Error> {
        self.visible_changes(|file| self.paths.workspace.seen_path(file), |_| false)
    }

    /// The changes in the roots, and those of a session in its own directories and outside the workspace.
    pub(crate) fn session_changes(&self, session: &Session) -> Result<ChangeLog, Error> {
        let workspace = self.paths.workspace.with(session.opened_roots().iter().cloned());
        self.visible_changes(|file| workspace.seen_path(file), |id| session.made_outside(id))
    }

    /// Changes whose files are visible, or that were made outside the workspace, with visible paths.
    fn visible_changes(
        &self,
        seen_path: impl Fn(&Path) -> Option<PathBuf>,
        made_outside: impl Fn(u64) -> bool,
    ) -> Result<ChangeLog, Error> {
        let journal = self.require_journal()?;
        // Another process may have been killed during a change since this one started. If the recovery fails, only
        // that change is missing.
        let _ = journal.recover(&self.paths.workspace);
        let Changes { entries, damaged } =
            journal.changes().map_err(|error| journal_error(&error))?;
        let firsts = entries.first().map(|entry| entry.id).into_iter();
        let oldest = firsts.chain(damaged.first().map(|damaged| *damaged.ids.start())).min();
        let (mut seen, mut partial) = (HashSet::<u64>::new(), HashSet::<u64>::new());
        let mut entries = entries;
        let mut elsewhere = BTreeMap::new();
        for entry in &mut entries {
            if entry.paths().next().is_none() || made_outside(entry.id) {
                seen.insert(entry.id);
                continue;
            }
            if entry.paths().any(|path| seen_path(&path).is_some()) {
                seen.insert(entry.id);
                if entry.retain_paths(|path| seen_path(path).is_some()) {
                    partial.insert(entry.id);
                }
            } else if let Some(path) = entry.paths().next() {
                elsewhere.insert(entry.id, path.parent().unwrap_or(&path).to_owned());
            }
        }
        let entries = entries.into_iter().map(|entry| with_paths(entry, &seen_path));
        let entries: Vec<Entry> = entries.collect();
        let mut undone = undone_parts(&entries, &HashSet::new());
        // The changes that each undo reverts.
        let mut undos = HashMap::<u64, Vec<u64>>::new();
        let mut here = HashSet::<u64>::new();
        let mut history = Vec::new();
        let mut ignored = IgnoredDirectories::new(&self.paths.workspace);
        for entry in entries {
            let undoes = &entry.about.undoes;
            let hunk_of = entry.about.hunk_of;
            let is_undo = hunk_of.is_some() || undoes.iter().any(|of| !undos.contains_key(of));
            let redone = undoes.iter().filter_map(|of| undos.get(of)).flatten();
            let redoes: Vec<u64> = if is_undo { Vec::new() } else { redone.copied().collect() };
            if is_undo {
                undos.insert(entry.id, undoes.iter().copied().chain(hunk_of).collect());
            }
            // A change without files is an undo that had no effect. It belongs to the workspace of the undone
            // change.
            let is_here = match entry.paths().next() {
                None => entry.about.undoes.iter().any(|of| here.contains(of)),
                Some(_) => seen.contains(&entry.id),
            };
            if is_here {
                here.insert(entry.id);
                let undone_parts = undone.remove(&entry.id).unwrap_or_default();
                let mut entry = self.history_entry(undone_parts, is_undo, entry, &mut ignored);
                entry.is_partial = partial.contains(&entry.id);
                entry.redoes = redoes;
                history.push(entry);
            }
        }
        Ok(ChangeLog { changes: history, damaged, oldest, elsewhere })
    }

    /// The diff of a change. Files in ignored directories are counted, and those that the reader may not see are named.
    pub(crate) fn diff_of(
        &self,
        change: &HistoryEntry,
        may_see: impl Fn(&Path) -> bool,
    ) -> Result<String, Error> {
        let mut ignored = IgnoredFiles::new(&self.paths.workspace);
        let files = change.entry.files.iter().filter(|file| !ignored.count(&file.path()));
        let top = self.paths.workspace.top();
        let diff = |file: &FileChange| match file.path() {
            path if may_see(&path) => Ok(self.file_diff(file)?.text),
            path => Ok(format!(
                "[{}: not shown, because a rule denies reading it, or asks first]\n",
                self.paths.show(&top, &path)
            )),
        };
        let diffs: String = files.map(diff).collect::<Result<_, Error>>()?;
        let directories = change.directories.iter();
        let directories =
            directories.map(|one| format!("[{} directory {}]\n", one.action, one.path));
        let ignored = ignored.line(|path| self.paths.show(&top, path));
        Ok(diffs + &directories.collect::<String>() + &ignored)
    }

    /// The numbers of added and removed lines. `None` if the journal no longer has the content, or if the change is
    /// too large to be counted while a person waits.
    pub(crate) fn lines_of(&self, change: &HistoryEntry) -> Option<(usize, usize)> {
        let sizes = change.entry.files.iter().flat_map(|file| [file.before, file.after]);
        let bytes: u64 = sizes.flatten().map(|version| version.size).sum();
        if bytes > MAX_COUNTED_BYTES {
            return None;
        }
        change.entry.files.iter().try_fold((0, 0), |(added, removed), file| {
            let diff = self.file_diff(file).ok()?;
            Some((added + diff.added, removed + diff.removed))
        })
    }

    /// The combined diff of all changes, or of those from the id `since` on: each file before the first
    /// of them against its current content. Files in ignored directories are counted.
    pub(crate) fn diff_since(&self, since: Option<u64>) -> Result<String, Error> {
        let mut first: BTreeMap<PathBuf, FileChange> = BTreeMap::new();
        let log = self.change_log()?;
        since.map(|id| log.find(id)).transpose()?;
        for change in log.changes {
            if since.is_none_or(|since| change.id >= since) {
                for file in change.entry.files {
                    first.entry(file.path()).or_insert(file);
                }
            }
        }
        let top = self.paths.workspace.top();
        let mut diffs = String::new();
        let mut ignored = IgnoredFiles::new(&self.paths.workspace);
        for (path, file) in first {
            if ignored.contains(&path) {
                if !self.is_as_before(&path, file.before) {
                    ignored.count(&path);
                }
                continue;
            }
            let shown = self.paths.show(&top, &path);
            let Ok(before) = self.version(file.before) else {
                diffs += &format!("{shown}: the previous content is no longer stored\n");
                continue;
            };
            let place = self.paths.workspace.entry(&path);
            let now = match place.as_ref().filter(|place| place.kind() != Some(FileKind::Directory))
            {
                None => None,
                Some(place) => match read_entry(place, self.limits.edit_bytes) {
                    Ok(now) => now,
                    Err(error) => {
                        diffs += &format!("{shown} {}\n", error.detail());
                        continue;
                    }
                },
            };
            let line_chars = self.limits.line_chars;
            diffs +=
                &unified_diff(&shown, before.as_deref(), now.as_deref(), line_chars, None).text;
        }
        Ok(diffs + &ignored.line(|path| self.paths.show(&top, path)))
    }

    /// Whether a file has the content of this version, or does not exist if there is none.
    fn is_as_before(&self, path: &Path, before: Option<Version>) -> bool {
        let place = self.paths.workspace.entry(path);
        let now = place.map_or(Ok(None), |place| read_entry(&place, self.limits.edit_bytes));
        match (before, now) {
            (None, Ok(None)) => true,
            (Some(before), Ok(Some(now))) => {
                before.link == now.is_link() && before.hash == now.hash()
            }
            _ => false,
        }
    }

    /// Diff of one file. The content of a symlink is its target.
    fn file_diff(&self, file: &FileChange) -> Result<Diff, Error> {
        let before = self.version(file.before)?;
        let after = self.version(file.after)?;
        let shown = self.paths.show(&self.paths.workspace.top(), &file.path());
        let line_chars = self.limits.line_chars;
        let mut diff = unified_diff(&shown, before.as_deref(), after.as_deref(), line_chars, None);
        if [&before, &after].into_iter().flatten().any(Content::is_link) {
            diff.text = format!("[{shown}: the text of a symlink is its target]\n{}", diff.text);
        }
        Ok(diff)
    }

    /// Content of a version of a file, or target of a symlink.
    pub(crate) fn version(&self, version: Option<Version>) -> Result<Option<Content>, Error> {
        let Some((journal, version)) = self.journal().zip(version) else { return Ok(None) };
        match journal.content(&version).map_err(|error| journal_error(&error))? {
            Some(content) => Ok(Some(version.content(content))),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("the content {} is no longer stored", version.hash.short()),
            )
            .hint("The journal has size limits; older contents were deleted.")),
        }
    }

    fn history_entry(
        &self,
        undone_parts: UndoneParts,
        is_undo: bool,
        entry: Entry,
        ignored: &mut IgnoredDirectories<'_>,
    ) -> HistoryEntry {
        let top = self.paths.workspace.top();
        let short = |version: &Option<Version>| version.map(|version| version.hash.short());
        // A short line names all files of a small change, and none of one that affects only ignored files.
        let is_split = entry.files.len() > NAMED_FILES && !entry.only_ignored;
        let (ignored, others): (Vec<&FileChange>, Vec<&FileChange>) = (entry.files.iter())
            .partition(|file| is_split && ignored.containing(&file.path()).is_some());
        let ignored_files = ignored.len();
        let files = others.into_iter().chain(ignored).map(|file| HistoryFile {
            path: self.paths.show(&top, &file.path()),
            action: match (&file.before, &file.after) {
                (None, _) => "created",
                (_, None) => "deleted",
                _ => "changed",
            },
            hashes: (short(&file.before), short(&file.after)),
        });
        let directory = |action, path: PathBuf| {
            let path = self.paths.show(&top, &path);
            HistoryDirectory { path, action }
        };
        let mut paths: Vec<PathBuf> = entry.files.iter().map(FileChange::path).collect();
        paths.sort_unstable();
        // In sorted order, the entries of a directory follow it directly.
        let is_empty = |directory: &PathBuf| {
            let after = paths.partition_point(|path| path <= directory);
            paths.get(after).is_none_or(|path| !path.starts_with(directory))
        };
        let made = entry.directories.iter().map(KeptPath::path).filter(is_empty);
        let removed = entry.removed.iter().map(KeptDirectory::path).filter(is_empty);
        let directories = made.map(|path| directory("created", path));
        let directories = directories.chain(removed.map(|path| directory("removed", path)));
        let only = entry.about.only.as_ref().map(|only| self.paths.show(&top, &only.path()));
        HistoryEntry {
            id: entry.id,
            time_ms: entry.time_ms,
            tool: entry.about.tool.clone(),
            rule: entry.about.rule.clone(),
            command: command(&entry),
            only_ignored: entry.only_ignored,
            undoes: entry.about.undoes.clone(),
            redoes: Vec::new(),
            hunk_of: entry.about.hunk_of,
            only,
            undone: undone_parts.is_all_of(&entry),
            undone_in_part: undone_parts.is_part_of(&entry),
            is_undo,
            files: files.collect(),
            directories: directories.collect(),
            not_kept: entry
                .not_kept
                .iter()
                .map(|kept| self.paths.show(&top, &kept.path()))
                .collect(),
            modes: entry.modes.iter().map(|mode| self.paths.show(&top, &mode.path())).collect(),
            is_partial: false,
            ignored_files,
            entry,
            undone_parts,
        }
    }
}

/// Replaces the paths of a change by those under which tools see its files.
fn with_paths(entry: Entry, seen_path: &impl Fn(&Path) -> Option<PathBuf>) -> Entry {
    entry.at_paths(|path| seen_path(path).unwrap_or_else(|| path.to_owned()))
}

/// First line of the command of a change. Journals of 0.1.0 have it only in the arguments.
fn command(entry: &Entry) -> Option<String> {
    let of_arguments = || entry.about.arguments.get("command")?.as_str();
    let command = entry.about.command.as_deref().or_else(of_arguments)?;
    Some(visible_name(one_line(command, command.len()).as_bytes()))
}

impl HistoryEntry {
    /// Whether nothing of it is stored, so that it cannot be undone.
    pub(crate) fn has_nothing_to_undo(&self) -> bool {
        let Entry { files, directories, removed, not_kept, modes, .. } = &self.entry;
        let has_nothing = files.is_empty() && directories.is_empty() && removed.is_empty();
        has_nothing && !(not_kept.is_empty() && modes.is_empty())
    }

    /// Whether it changed nothing but modes of directories, which Undo does not restore.
    pub(crate) fn has_only_modes(&self) -> bool {
        self.has_nothing_to_undo() && self.entry.not_kept.is_empty()
    }

    /// Whether it changed this path or one below it. The path is absolute, with real names.
    pub fn is_at(&self, path: &Path) -> bool {
        self.entry.paths().any(|changed| changed.starts_with(path))
    }

    /// Age of the change, in words.
    pub fn age(&self) -> String {
        age(self.time_ms)
    }

    /// Arguments of the call. Long strings are truncated.
    pub fn arguments(&self) -> &serde_json::Value {
        &self.entry.about.arguments
    }

    /// One line: the origin of the change, and the changed files.
    pub fn summary(&self) -> String {
        let maker = self.maker();
        if self.only_ignored {
            let total = self.files.len() as u64 + self.entry.ignored_not_kept;
            let files = counted(total, "ignored or generated file");
            let directories = counted(self.directories.len() as u64, "directory");
            return match (self.files.len(), self.directories.len()) {
                (_, 0) => format!("{maker}: {files}"),
                (0, _) => format!("{maker}: {directories}, ignored or generated"),
                _ => format!("{maker}: {files} and {directories}"),
            };
        }
        let others = self.files.len().saturating_sub(self.ignored_files);
        let files = self.files.iter().take(others).map(|file| match file.action {
            "changed" => file.path.clone(),
            action => format!("{} ({action})", file.path),
        });
        let directories =
            self.directories.iter().map(|one| format!("{} (directory {})", one.path, one.action));
        let not_kept = self.not_kept.iter().map(|path| format!("{path} (not kept)"));
        let modes = self.modes.iter().map(|path| format!("{path} (mode of the directory)"));
        let all: Vec<String> = files.chain(directories).chain(not_kept).chain(modes).collect();
        let mut named: Vec<String> = all.iter().take(NAMED_FILES).cloned().collect();
        let more = all.len().saturating_sub(NAMED_FILES);
        named.extend((more > 0).then(|| format!("and {more} more")));
        named.extend(match (self.ignored_files, all.is_empty()) {
            (0, _) => None,
            (ignored, true) => Some(counted(ignored as u64, "ignored or generated file")),
            (ignored, false) => Some(format!("and {ignored} ignored or generated")),
        });
        match named.as_slice() {
            [] => format!("{maker}: no file changed"),
            named => format!("{maker}: {}", named.join(", ")),
        }
    }

    /// Origin of the change: the tool, with its command or with the changes that it reverts.
    pub fn maker(&self) -> String {
        const NAMED: usize = 5;
        let mut maker = Name::tool(&self.tool).to_string();
        if !self.redoes.is_empty() {
            return format!("Redo of {}", first_of(&self.redoes, NAMED, u64::to_string));
        }
        if let Some(command) = &self.command {
            maker += &format!(" `{}`", one_line(command, COMMAND_CHARS));
        }
        if !self.undoes.is_empty() {
            maker += &format!(" of {}", first_of(&self.undoes, NAMED, u64::to_string));
        }
        if let Some(change) = self.hunk_of {
            maker += &format!(" of a hunk of {change}");
        }
        match &self.only {
            Some(only) => format!("{maker} at {only}"),
            None => maker,
        }
    }

    /// Ids of the changes that it reverts, completely or in part.
    pub(crate) fn reverted(&self) -> impl Iterator<Item = u64> {
        self.undoes.iter().copied().chain(self.hunk_of)
    }

    /// Files that have not been undone.
    pub(crate) fn effective_files(&self) -> impl Iterator<Item = &FileChange> {
        self.entry.files.iter().filter(|file| !self.undone_parts.includes(&file.path()))
    }

    /// Whether the change has an effect at or below this path that has not been undone.
    pub(crate) fn is_effective_at(&self, path: &Path) -> bool {
        let mut paths = self.entry.paths();
        paths.any(|one| one.starts_with(path) && !self.undone_parts.includes(&one))
    }
}
