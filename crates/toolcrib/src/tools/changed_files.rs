//! Notes and metadata about the files that a command changed.

mod moves;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib_exec::Job;
use toolcrib_fs::{Action, ChangedFile, NotKept};

use self::moves::Move;
use crate::authorize;
use crate::command_changes::{CommandChanges, NewChanges, RepositoryNotes};
use crate::cx::Cx;
use crate::error::Error;
use crate::message_names::UNDO;
use crate::metadata_fields::MetadataField;
use crate::output_notes::bracketed;
use crate::phrases::{counted, first_of, it_or_them};
use crate::run_later_notes::RunLater;

/// Number of files of a kind that the text names and that the metadata lists.
const NAMED: usize = 8;
const LISTED: usize = 200;

/// The files that a command changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Without moved files.
    files: Vec<Changed>,
    moves: Vec<Move>,
    /// Directories without changed files: the action and the path.
    directories: Vec<(&'static str, String)>,
    ids: Vec<u64>,
    repositories: RepositoryNotes,
    warnings: Vec<String>,
    run_later: RunLater,
}

/// Metadata of a reply about a command that changed files.
pub(super) const CHANGED_FILES: &[MetadataField] = &[
    MetadataField::new(
        "change",
        "integer",
        "files were changed and the journal is on",
        "Id of the change, for Undo and History.",
    ),
    MetadataField::new(
        "files_changed",
        "object",
        "the command changed files",
        "The changed files; each list has at most 200.",
    ),
    MetadataField::new(
        "files_changed.count",
        "integer",
        "with its object",
        "Number of changed files.",
    ),
    MetadataField::new(
        "files_changed.not_kept",
        "integer",
        "with its object",
        "Files that Undo cannot restore.",
    ),
    MetadataField::new(
        "files_changed.created",
        "array of string",
        "with its object",
        "Created files.",
    ),
    MetadataField::new(
        "files_changed.modified",
        "array of string",
        "with its object",
        "Modified files.",
    ),
    MetadataField::new(
        "files_changed.deleted",
        "array of string",
        "with its object",
        "Deleted files.",
    ),
];

#[derive(Debug)]
struct Changed {
    shown: String,
    file: ChangedFile,
}

impl Changes {
    /// The changes of a command since the last call of this function.
    pub(super) fn of(cx: &Cx<'_>, changes: &CommandChanges) -> Changes {
        let next_directory = authorize::command_directory(cx.session(), &[]);
        let NewChanges { files, made, removed, renames, ids, repositories, warnings } =
            changes.take(&next_directory);
        let top = cx.session().directory();
        let written = files
            .iter()
            .filter(|file| file.action != Action::Deleted && !file.ignored)
            .map(|file| file.path.as_path());
        let run_later = RunLater::of_command(cx.paths(), cx.session(), written);
        let show = |path: &Path| cx.paths().show(top, path);
        let shown = |file: ChangedFile| Changed { shown: show(&file.path), file };
        let files: Vec<Changed> = files.into_iter().map(shown).collect();
        let (moves, files) = Move::all(files, &renames, show);
        let directories = moves::without_moved(&moves, made, removed);
        let directories = directories.map(|(word, path)| (word, show(&path))).collect();
        Changes { files, moves, directories, ids, repositories, warnings, run_later }
    }

    /// The changes of a job, once all of its processes have exited.
    pub(super) fn of_job(cx: &Cx<'_>, job: &Job) -> Result<Changes, Error> {
        let changes = cx.shell()?.changes_of(job.id()).filter(|_| job.snapshot().all_exited);
        Ok(changes.map(|changes| Changes::of(cx, &changes)).unwrap_or_default())
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let RepositoryNotes { moved, beside_files, lost } = &self.repositories;
        let parts = self.parts();
        if !parts.is_empty() {
            let is_git = [moved, beside_files, lost].into_iter().any(|notes| !notes.is_empty());
            notes.push(format!("{}{}", parts.join("; "), self.undo_phrase(is_git)));
            notes.extend(beside_files.iter().cloned());
        }
        notes.extend(moved.iter().cloned());
        notes.extend(lost.iter().cloned());
        notes.extend(self.lost_notes());
        notes.extend(self.warnings.iter().cloned());
        notes.extend(self.run_later.notes());
        notes
    }

    /// The changes by kind, in words.
    fn parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        if !self.moves.is_empty() {
            let moves = first_of(&self.moves, NAMED, Move::phrase);
            parts.push(format!("moved {moves}"));
        }
        let kinds = [
            ("modified", Action::Modified),
            ("created", Action::Created),
            ("deleted", Action::Deleted),
        ];
        for (word, action) in kinds {
            let of_kind = |one: &&Changed| {
                one.file.action == action && !one.file.ignored && !one.is_mode_change()
            };
            let files: Vec<&Changed> = self.files.iter().filter(of_kind).collect();
            // Many new or deleted files are usually a directory.
            let names = named(&files, action != Action::Modified);
            parts.extend((!files.is_empty()).then(|| format!("{word} {names}")));
        }
        let is_mode_change = |one: &&Changed| one.is_mode_change() && !one.file.ignored;
        let modes: Vec<&Changed> = self.files.iter().filter(is_mode_change).collect();
        if !modes.is_empty() {
            parts.push(format!("changed the mode of {}", named(&modes, true)));
        }
        for word in ["created", "removed"] {
            let of_word = |(what, _): &&(&str, String)| *what == word;
            let directories: Vec<_> = self.directories.iter().filter(of_word).collect();
            let names = first_of(&directories, NAMED, |(_, shown)| shown.clone());
            if !directories.is_empty() {
                let noun = if directories.len() == 1 { "directory" } else { "directories" };
                parts.push(format!("{word} the {noun} {names}"));
            }
        }
        for (word, action) in kinds {
            let of_kind = |one: &&Changed| one.file.action == action && one.file.ignored;
            let ignored: Vec<&Changed> = self.files.iter().filter(of_kind).collect();
            if ignored.is_empty() {
                continue;
            }
            let count = counted(ignored.len() as u64, "ignored or generated file");
            // No build makes a deleted `.env` or database again.
            parts.push(match action {
                Action::Deleted => format!("{word} {count} ({})", named(&ignored, true)),
                _ => format!("{word} {count}"),
            });
        }
        parts
    }

    /// What Undo reverts. `is_git` is whether git state was changed, too.
    fn undo_phrase(&self, is_git: bool) -> String {
        if self.ids.is_empty() {
            return String::new();
        }
        let ids: Vec<String> = self.ids.iter().map(u64::to_string).collect();
        let what = if is_git { "the files, not the git state" } else { "this" };
        let except = if self.lost().is_empty() { "" } else { " (exceptions below)" };
        format!("; {UNDO} with id {} reverts {what}{except}", ids.join(", "))
    }

    /// The notes as lines.
    pub(super) fn text(&self) -> String {
        self.notes().iter().map(bracketed).collect()
    }

    pub(super) fn facts(&self) -> Vec<(&'static str, Value)> {
        if self.files.is_empty() && self.moves.is_empty() {
            return self.change_fact().into_iter().collect();
        }
        let all = || self.files.iter().chain(self.moves.iter().flat_map(|one| &one.files));
        let of = |action: Action| -> Vec<&str> {
            let mut names: Vec<&str> = all()
                .filter(|one| one.file.action == action)
                .map(|one| one.shown.as_str())
                .collect();
            names.sort_unstable();
            names.truncate(LISTED);
            names
        };
        let lost = all().filter(|one| one.file.lost.is_some()).count();
        let mut facts = vec![(
            "files_changed",
            json!({
                "count": all().count(),
                "not_kept": lost,
                "created": of(Action::Created),
                "modified": of(Action::Modified),
                "deleted": of(Action::Deleted),
            }),
        )];
        facts.extend(self.run_later.facts());
        facts.extend(self.change_fact());
        facts
    }

    fn change_fact(&self) -> Option<(&'static str, Value)> {
        self.ids.last().map(|id| ("change", (*id).into()))
    }

    /// The notes about files that Undo cannot restore or remove, with reasons.
    fn lost_notes(&self) -> Vec<String> {
        let (made, others): (Vec<_>, Vec<_>) =
            self.lost().into_iter().partition(|(one, _)| one.file.action == Action::Created);
        let named = |lost: &[(&Changed, &NotKept)]| {
            first_of(lost, NAMED, |(one, lost)| format!("{} ({lost})", one.shown))
        };
        let mut notes = Vec::new();
        if !made.is_empty() {
            notes.push(format!("{UNDO} does not remove {}", named(&made)));
        }
        if !others.is_empty() {
            let them = it_or_them(others.len() as u64);
            notes.push(format!("not kept, so {UNDO} cannot restore {them}: {}", named(&others)));
        }
        notes
    }

    /// The files that Undo cannot restore or remove, with reasons.
    fn lost(&self) -> Vec<(&Changed, &NotKept)> {
        let lost = self.files.iter().filter_map(|one| Some((one, one.file.lost.as_ref()?)));
        lost.filter(|(_, lost)| !matches!(lost, NotKept::NoJournal)).collect()
    }
}

impl Changed {
    /// Whether only the mode was changed.
    fn is_mode_change(&self) -> bool {
        let (Some(before), Some(after)) = self.file.versions else { return false };
        (before.hash, before.link) == (after.hash, after.link) && before.mode != after.mode
    }
}

/// The first files, or many of them counted by directory if `folds`.
fn named(files: &[&Changed], folds: bool) -> String {
    if folds && files.len() > NAMED {
        by_directory(files)
    } else {
        first_of(files, NAMED, |one| one.shown.clone())
    }
}

/// The number of files in each top directory: `40 files in docs, setup.py`.
fn by_directory(files: &[&Changed]) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in files {
        let below = one.shown.find('/').filter(|at| *at > 0);
        let group = below.and_then(|at| one.shown.get(..at)).unwrap_or(&one.shown);
        groups.entry(group).or_default().push(&one.shown);
    }
    let groups: Vec<(&str, Vec<&str>)> = groups.into_iter().collect();
    first_of(&groups, NAMED, |(directory, files)| match files.as_slice() {
        [only] => (*only).to_owned(),
        several => format!("{} in {directory}", counted(several.len() as u64, "file")),
    })
}
