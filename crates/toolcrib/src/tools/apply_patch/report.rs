//! The reply of a patch: one line per file, notes about inexact hunks, and the diff.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolcrib_fs::NewMode;
use toolcrib_text::{FileAction, HunkFate, TextProperties, renamed_diff};

use super::patched_files::File;
use super::plan::{Part, Plan};
use crate::cx::{Changed, Cx};
use crate::phrases::counted;
use crate::reply::Reply;
use crate::tools::content_checks::ContentChecks;
use crate::tools::shown_diff::DiffDetail;

/// Limit of notes.
const MAX_NOTES: usize = 20;

pub(super) fn reply(cx: &Cx<'_>, plan: &Plan, changed: Changed, detail: DiffDetail) -> Reply {
    let diff = Diff::of(cx, plan, detail);
    let modified = plan.files.iter().filter(|file| file.is_changed()).count();
    let mut text = summary(cx, plan, modified);
    let link = |file: &File| cx.followed_link(&file.path).ok().flatten();
    let links =
        plan.files.iter().filter_map(link).map(|link| format!("Through the symlink {link}."));
    let of_parts = plan.parts.iter().flat_map(|part| notes_of_hunks(plan, part));
    let notes_of_hunks: Vec<String> = of_parts.chain(links).collect();
    let left_out = notes_of_hunks.len().saturating_sub(MAX_NOTES);
    for hunk_note in notes_of_hunks.iter().take(MAX_NOTES).chain(&changed.notes) {
        text += &format!("\n{hunk_note}");
    }
    if left_out > 0 {
        text += &format!("\n[{left_out} more notes]");
    }
    let errors = new_errors(plan);
    errors.notes().iter().for_each(|note| text += &format!("\n{note}"));
    let files: Vec<Value> = plan.parts.iter().map(|part| facts(plan, part)).collect();
    let reply = Reply::new(text)
        .with("files_modified", modified)
        .with("files", files)
        .with("already_applied", modified == 0)
        .with("added_lines", diff.added)
        .with("removed_lines", diff.removed)
        .with_all(changed.facts());
    errors.facts(detail.show(reply, diff.text, changed.id))
}

/// The syntax errors that the patch introduced. A moved file is compared with its source; a copy has the errors of
/// its source.
fn new_errors(plan: &Plan) -> ContentChecks {
    let mut errors = ContentChecks::new();
    for (at, file) in plan.files.iter().enumerate().filter(|(_, file)| file.is_changed()) {
        let mut parts = plan.parts.iter().filter(|part| part.file == at);
        let (Some(now), Some(part)) = (&file.now, parts.next()) else { continue };
        let was = match part.moved {
            Some(source) => plan.files.get(source).was.as_deref(),
            None => file.was.as_deref(),
        };
        if part.action != FileAction::Copy {
            errors.examine(&file.shown, Some(&file.shown), was, now);
        }
    }
    errors
}

/// One line per file.
fn summary(cx: &Cx<'_>, plan: &Plan, modified: usize) -> String {
    let distinct: HashSet<usize> = plan.parts.iter().map(|part| part.file).collect();
    let files = counted(distinct.len() as u64, "file");
    let applied = plan.parts.iter().filter(|part| !part.already).map(|part| part.file);
    let applied = applied.collect::<HashSet<usize>>().len();
    let is_whole = applied == distinct.len();
    let did = match (modified, cx.dry_run()) {
        (0, _) => "The patch is already applied; nothing was written".to_owned(),
        (_, false) if is_whole => format!("Applied the patch to {files}"),
        (_, true) if is_whole => {
            format!("Dry run, nothing written. Would apply the patch to {files}")
        }
        (_, false) => format!("Changed {applied} of {files}"),
        (_, true) => format!("Dry run, nothing written. Would change {applied} of {files}"),
    };
    let mut named = HashSet::new();
    let lines: String = match modified {
        // The parts together have no effect.
        0 => plan
            .parts
            .iter()
            .map(|part| part.file)
            .filter(|file| named.insert(*file))
            .map(|file| already_applied_line(plan, file))
            .collect(),
        _ => plan.parts.iter().map(|part| line(plan, part)).collect(),
    };
    format!("{did}:{lines}")
}

fn line(plan: &Plan, part: &Part) -> String {
    let file = plan.files.get(part.file);
    let from = part.from.as_deref().unwrap_or_default();
    let mut notes = Vec::new();
    if part.action == FileAction::Add && !part.already {
        let lines = file.now.as_deref().map_or(0, |now| TextProperties::of(now).lines());
        notes.push(counted(lines, "line"));
    }
    if !part.hunks.is_empty() {
        notes.push(counted(part.hunks.len() as u64, "hunk"));
    }
    match file.changed_mode() {
        Some(NewMode::Executable(true)) => notes.push("executable".to_owned()),
        Some(NewMode::Executable(false)) => notes.push("no longer executable".to_owned()),
        _ => {}
    }
    if part.already {
        return already_applied_line(plan, part.file);
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let shown = &file.shown;
    match part.action {
        FileAction::Add => format!("\n  added {shown}{notes}"),
        FileAction::Update => format!("\n  updated {shown}{notes}"),
        FileAction::Delete => format!("\n  deleted {shown}{notes}"),
        FileAction::Move => format!("\n  moved {from} → {shown}{notes}"),
        FileAction::Copy => format!("\n  copied {from} → {shown}{notes}"),
    }
}

fn already_applied_line(plan: &Plan, file: usize) -> String {
    format!("\n  {} already has these changes", plan.files.get(file).shown)
}

/// Notes about hunks that did not match exactly.
fn notes_of_hunks(plan: &Plan, part: &Part) -> Vec<String> {
    let shown = &plan.files.get(part.file).shown;
    let hunk_note = |(number, fate): (usize, &HunkFate)| {
        let mut words = Vec::new();
        if fate.already && !part.already {
            words.push("was already applied".to_owned());
        }
        // The offset of an applied hunk is that of the whole patch.
        if fate.offset != 0 && !fate.already {
            let by = counted(fate.offset.unsigned_abs(), "line");
            let way = if fate.offset > 0 { "further down" } else { "further up" };
            words.push(format!("was found {by} {way}, at line {}", fate.line));
        }
        if let Some(rung) = fate.rung {
            words.push(format!(
                "matched except for {}; context lines stay as they are in the file",
                rung.words()
            ));
        }
        (!words.is_empty()).then(|| format!("Hunk {number} in {shown} {}.", words.join(", and ")))
    };
    (1..).zip(&part.hunks).filter_map(hunk_note).collect()
}

/// Metadata of a part.
fn facts(plan: &Plan, part: &Part) -> Value {
    let file = plan.files.get(part.file);
    let action = match part.action {
        FileAction::Add | FileAction::Copy => "add",
        FileAction::Update => "update",
        FileAction::Delete => "delete",
        FileAction::Move => "move",
    };
    let hunks: Vec<Value> = part.hunks.iter().map(hunk_facts).collect();
    let mut facts = json!({"path": file.shown, "action": action});
    if let Some(from) = &part.from {
        facts["from"] = json!(from);
    }
    if !hunks.is_empty() {
        facts["hunks"] = json!(hunks);
    }
    if part.already {
        facts["already_applied"] = json!(true);
    }
    if let Some(now) = &file.now {
        facts["hash"] = json!(now.hash().short());
    }
    facts
}

fn hunk_facts(fate: &HunkFate) -> Value {
    let matched = fate.rung.map_or("exact", |rung| rung.name());
    let mut facts = json!({"line": fate.line, "offset": fate.offset, "matched": matched});
    if fate.already {
        facts["already_applied"] = json!(true);
    }
    facts
}

/// The diff of all files, with its totals.
#[derive(Default)]
struct Diff {
    text: String,
    added: usize,
    removed: usize,
}

impl Diff {
    fn of(cx: &Cx<'_>, plan: &Plan, detail: DiffDetail) -> Diff {
        let moves: HashMap<usize, usize> =
            plan.parts.iter().filter_map(|p| moved(plan, p)).collect();
        let sources: HashSet<usize> = moves.values().copied().collect();
        let mut diff = Diff::default();
        for (at, file) in plan.files.iter().enumerate() {
            if !file.is_changed() || sources.contains(&at) {
                continue;
            }
            let from = moves.get(&at).map(|from| plan.files.get(*from));
            if let Some(from) = from {
                // A renamed file is not shown line by line.
                diff.text += &format!("rename from {}\nrename to {}\n", from.shown, file.shown);
            }
            let was = from.unwrap_or(file);
            diff.push(cx, file, (&was.shown, was.was.as_deref()), detail);
        }
        diff
    }

    fn push(&mut self, cx: &Cx<'_>, file: &File, was: (&str, Option<&[u8]>), detail: DiffDetail) {
        let line_chars = cx.limits().line_chars;
        let real = cx.real_path(&file.path).ok();
        let encoding = real.and_then(|real| cx.session().encoding(&real));
        let now = (file.shown.as_str(), file.now.as_deref());
        let diff = renamed_diff(was, now, line_chars, encoding);
        // The caller knows the content of a new file.
        if was.1.is_some() || detail == DiffDetail::Full {
            self.text += &diff.text;
        }
        self.added += diff.added;
        self.removed += diff.removed;
    }
}

/// Target and source of a move, if no other part changes either path.
fn moved(plan: &Plan, part: &Part) -> Option<(usize, usize)> {
    let from = part.moved.filter(|_| !part.already)?;
    let only = plan.files.get(from).now.is_none() && plan.files.get(part.file).was.is_none();
    only.then_some((part.file, from))
}
