//! The reply of an undo: one line per change and file, without content.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toolcrib_fs::{Content, DirectoryMode, FileKind, KeptPath, NewMode};
use toolcrib_text::{TextProperties, unified_diff, visible_name};

use super::group_by_ignored_directory;
use super::whole_directories::WholeDirectory;
use crate::changed_by::is_by_session;
use crate::cx::{Cx, FileEdit};
use crate::history::{ChangeLog, HistoryEntry, MAX_COUNTED_BYTES};
use crate::phrases::{counted, first_of};
use crate::undo::{Plan, Selection};

/// Limits of lines about changes, and about files and directories.
const MAX_CHANGES: usize = 5;
const MAX_FILES: usize = 10;

/// Limit of lines about ignored directories.
const MAX_IGNORED: usize = 2;

/// Number of files named in a line.
const NAMED: usize = 10;

/// The lines of the reply, made before the undo is performed.
pub(super) struct Report {
    lines: Vec<String>,
}

impl Report {
    pub(super) fn of(cx: &Cx<'_>, chosen: &Selection, plan: &Plan, log: &ChangeLog) -> Report {
        let is_redo = chosen.changes.iter().all(|change| change.is_undo);
        let did = match (cx.dry_run(), is_redo) {
            (true, true) => "Dry run, nothing written. Would redo",
            (true, false) => "Dry run, nothing written. Would undo",
            (false, true) => "Redid",
            (false, false) => "Undid",
        };
        let undos: Vec<u64> = chosen.changes.iter().map(|change| change.id).collect();
        let only: Vec<String> = chosen.only.iter().map(|only| cx.show_real(only)).collect();
        let mut lines = vec![match (only.as_slice(), chosen.hunk) {
            ([one], Some(index)) => format!("{did}, only hunk {} of {one}", index + 1),
            ([_, ..], _) => format!("{did}, only at {}", first_of(&only, NAMED, String::clone)),
            ([], _) if is_redo => {
                let at = match chosen.changes.as_slice() {
                    [HistoryEntry { only: Some(only), .. }] => format!(" at {only}"),
                    _ => String::new(),
                };
                let undos = first_of(&undos, MAX_CHANGES, u64::to_string);
                format!("{did}{at} by reverting undo {undos}")
            }
            ([], _) => did.to_owned(),
        }];
        let changes = if is_redo { redone(chosen, log) } else { chosen.changes.iter().collect() };
        for change in changes.iter().take(MAX_CHANGES) {
            // At the command line every call has its own session, so the note would be noise.
            let is_own =
                cx.session().is_for_one_call() || is_by_session(cx.session(), &change.entry);
            let by = if is_own { "" } else { ", by another session" };
            lines.push(format!("  {} ({}{by}) {}", change.id, change.age(), change.summary()));
        }
        if changes.len() > MAX_CHANGES {
            let more = (changes.len() - MAX_CHANGES) as u64;
            lines.push(format!("  and {}", counted(more, "more change")));
        }
        let mut report = Report { lines };
        report.add_files(cx, plan);
        report.add_notes(cx, chosen, plan);
        let oldest = chosen.changes.iter().map(|change| change.id).min().unwrap_or(0);
        for damaged in log.damaged.iter().filter(|damaged| *damaged.ids.end() > oldest) {
            report.lines.push(format!("[{damaged}; it was not undone]"));
        }
        report
    }

    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }

    fn add_files(&mut self, cx: &Cx<'_>, plan: &Plan) {
        let restored = without_files(plan.needed.iter().map(|(path, _)| path), plan);
        let gone = plan.unneeded.iter().filter(|path| !plan.nonempty.contains(*path));
        let removed = without_files(gone, plan);
        let total = plan.edits.len() + restored.len() + removed.len();
        if total == 0 {
            self.lines.push(
                "The files already have their previous content; nothing was written.".to_owned(),
            );
        }
        let (ignored, mut files) = group_by_ignored_directory::split(cx, &plan.edits);
        let directories = WholeDirectory::all(plan, &files);
        files.retain(|edit| !directories.iter().any(|directory| directory.has(edit)));
        let total = directories.len() + files.len() + restored.len() + removed.len();
        let whole = directories.iter().map(|directory| directory.line(cx));
        let files = files.into_iter().map(|edit| line(cx, edit));
        let directory = |path: &Path, is_restored| {
            format!("{} directory {}", verb(cx, is_restored), cx.show_real(path))
        };
        let made = restored.iter().map(|path| directory(path, true));
        let gone = removed.iter().map(|path| directory(path, false));
        self.lines.extend(whole.chain(files).chain(made).chain(gone).take(MAX_FILES));
        if total > MAX_FILES {
            self.lines.push(format!("and {} more", total - MAX_FILES));
        }
        self.lines.extend(ignored.iter().take(MAX_IGNORED).map(|directory| {
            directory.only_file().map_or_else(|| directory.line(cx), |edit| line(cx, edit))
        }));
        if ignored.len() > MAX_IGNORED {
            let more = (ignored.len() - MAX_IGNORED) as u64;
            self.lines.push(format!("and files in {}", counted(more, "more ignored directory")));
        }
    }

    fn add_notes(&mut self, cx: &Cx<'_>, chosen: &Selection, plan: &Plan) {
        let named = |names: &[String]| first_of(names, NAMED, String::clone);
        if !plan.merged.is_empty() {
            self.lines.push(format!("Later changes were kept in: {}.", named(&plan.merged)));
        }
        let protected: Vec<String> = plan.restored.iter().map(|path| cx.show_real(path)).collect();
        if !protected.is_empty() {
            self.lines.push(format!(
                "This includes protected files, which need no further action: {}.",
                named(&protected)
            ));
        }
        let not_restored = not_restored(plan);
        if !not_restored.is_empty() {
            self.lines.push(format!("Not restored: {}.", named(&not_restored)));
        }
        let not_kept = chosen.changes.iter().flat_map(|change| &change.entry.not_kept);
        let (special, others): (Vec<PathBuf>, Vec<PathBuf>) =
            not_kept.map(KeptPath::path).partition(|path| is_special(cx, path));
        let shown = |paths: &[PathBuf]| first_of(paths, NAMED, |path| cx.show_real(path));
        if !special.is_empty() {
            let shown = shown(&special);
            self.lines.push(format!("Not removed, because only files and symlinks are: {shown}."));
        }
        if !others.is_empty() {
            let its = if others.len() == 1 { "its" } else { "their" };
            self.lines.push(format!(
                "Not reverted, because {its} content was not kept: {}.",
                shown(&others)
            ));
        }
        self.add_modes(cx, chosen);
        let ignored: u64 = chosen.changes.iter().map(|change| change.entry.ignored_not_kept).sum();
        if ignored > 0 {
            let files = counted(ignored, "more ignored or generated file");
            self.lines.push(format!(
                "Not reverted: {files}, over the limits for one command. Install or build them again."
            ));
        }
        let parts: BTreeSet<&String> =
            chosen.changes.iter().flat_map(|change| &change.entry.about.repository_parts).collect();
        if !parts.is_empty() {
            let parts: Vec<&String> = parts.into_iter().collect();
            let parts = first_of(&parts, NAMED, |part| (*part).clone());
            self.lines
                .push(format!("[only files are reverted; git state stays as it is: {parts}]"));
        }
        if !chosen.skipped_ignored.is_empty() {
            let ids = first_of(&chosen.skipped_ignored, NAMED, u64::to_string);
            self.lines.push(format!("[skipped {ids}: only ignored or generated files changed]"));
        }
        if !chosen.skipped_modes.is_empty() {
            let ids = first_of(&chosen.skipped_modes, NAMED, u64::to_string);
            self.lines.push(format!(
                "[skipped {ids}: only modes of directories changed, which stay as they are]"
            ));
        }
    }

    /// Adds the modes of directories, which stay.
    fn add_modes(&mut self, cx: &Cx<'_>, chosen: &Selection) {
        // The oldest change of a directory has the mode that it had.
        let modes = chosen.changes.iter().flat_map(|change| &change.entry.modes);
        let modes = modes.map(|mode| (mode.path(), mode));
        let modes: BTreeMap<PathBuf, &DirectoryMode> =
            modes.filter(|(path, _)| chosen.includes(path)).collect();
        for (path, mode) in modes.iter().take(NAMED) {
            let now = cx.entry(path).ok().and_then(|place| place.mode());
            if let Some(now) = now.filter(|now| *now != mode.before) {
                let (shown, before) = (cx.show_real(path), mode.before);
                self.lines.push(format!(
                    "The mode of the directory {shown} stays {now:o} (it was {before:o})."
                ));
            }
        }
        if modes.len() > NAMED {
            let more = counted((modes.len() - NAMED) as u64, "more directory");
            self.lines.push(format!("The modes of {more} stay, too."));
        }
    }
}

/// The changes that undos reverted, newest first.
fn redone<'a>(undos: &Selection, log: &'a ChangeLog) -> Vec<&'a HistoryEntry> {
    let ids: Vec<u64> = undos.changes.iter().flat_map(HistoryEntry::reverted).collect();
    log.changes.iter().rev().filter(|change| ids.contains(&change.id)).collect()
}

/// The files that may not be changed and are not restored, each with its reason.
pub(super) fn not_restored(plan: &Plan) -> Vec<String> {
    plan.kept.iter().map(|(path, why)| format!("{path} ({why})")).collect()
}

/// Whether a path is a FIFO, a socket or a device.
fn is_special(cx: &Cx<'_>, path: &Path) -> bool {
    let kind = cx.entry(path).ok().and_then(|place| place.kind());
    matches!(kind, Some(FileKind::Fifo | FileKind::Socket | FileKind::Device))
}

/// What happens to a file or directory.
pub(super) fn verb(cx: &Cx<'_>, is_restored: bool) -> &'static str {
    match (cx.dry_run(), is_restored) {
        (false, true) => "restored",
        (false, false) => "removed",
        (true, true) => "would restore",
        (true, false) => "would remove",
    }
}

fn line(cx: &Cx<'_>, edit: &FileEdit) -> String {
    let did = verb(cx, edit.now.is_some());
    let shown = cx.show_real(&edit.path);
    match facts(edit).as_slice() {
        [] => format!("{did} {shown}"),
        facts => format!("{did} {shown} ({})", facts.join(", ")),
    }
}

/// Describes the change of a file in few words.
fn facts(edit: &FileEdit) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(target) = edit.now.as_ref().filter(|now| now.is_link()) {
        return vec![format!("symlink to {}", visible_name(target))];
    }
    if edit.now.is_none() && edit.was.as_ref().is_some_and(Content::is_link) {
        return vec!["symlink".to_owned()];
    }
    let file = |content: &Option<Content>| content.clone().filter(|content| !content.is_link());
    let (was, now) = (file(&edit.was), file(&edit.now));
    let is_uncounted = |content: &Content| {
        content.len() as u64 > MAX_COUNTED_BYTES || TextProperties::of(content).looks_binary()
    };
    if was.iter().chain(&now).any(is_uncounted) {
        facts.extend(now.map(|now| counted(now.len() as u64, "byte")));
    } else {
        let diff = unified_diff("", was.as_deref(), now.as_deref(), usize::MAX, None);
        let signed = [('+', diff.added), ('-', diff.removed)];
        let signed = signed.iter().filter(|(_, lines)| *lines > 0);
        let signed: Vec<String> = signed.map(|(sign, lines)| format!("{sign}{lines}")).collect();
        facts.extend((!signed.is_empty()).then(|| signed.join(" ")));
    }
    if let (true, Some(NewMode::Exactly(mode))) = (edit.was.is_some(), edit.mode) {
        facts.push(format!("mode {mode:o}"));
    }
    facts
}

/// The directories in which no file changes.
fn without_files<'a>(directories: impl Iterator<Item = &'a PathBuf>, plan: &Plan) -> Vec<&'a Path> {
    // The edits are sorted by path, so those in a directory follow it directly.
    let has_files = |directory: &&PathBuf| {
        let after = plan.edits.partition_point(|edit| edit.path <= **directory);
        plan.edits.get(after).is_some_and(|edit| edit.path.starts_with(directory))
    };
    directories.filter(|directory| !has_files(directory)).map(PathBuf::as_path).collect()
}
