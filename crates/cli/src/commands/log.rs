//! `toolcrib log`, `show` and `diff`.

pub(super) mod audit;
pub(super) mod connections;
pub(super) mod decisions;
mod ocsf;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{
    ChangeLog, DamagedChanges, Error, ErrorKind, HistoryEntry, Runtime, to_json, visible_name,
};

use crate::args::Common;
use crate::commands::{given_directories, real_path};
use crate::output::{self, ADDED, DIM, NAME, REMOVED, WARNING};

/// The end of the summary of a change that is not completely in this workspace.
const ELSEWHERE: &str = "; and files outside this workspace";

pub(crate) fn log(
    common: &Common,
    runtime: &Runtime,
    limit: usize,
    path: Option<&Path>,
) -> Result<ExitCode, String> {
    let ChangeLog { changes: mut history, damaged, .. } =
        runtime.change_log().map_err(|error| error.to_string())?;
    if let Some(path) = path {
        let paths = real_paths(common, path)?;
        history.retain(|change| paths.iter().any(|path| change.is_at(path)));
    }
    history.reverse();
    let total = history.len();
    history.truncate(limit);
    if !output::for_people(common) {
        let changes: Vec<Value> = history.iter().map(facts).collect();
        let complete = changes.len() == total;
        let damaged: Vec<Value> = damaged.iter().map(damaged_facts).collect();
        let object = json!({
            "changes": changes, "total": total, "complete": complete, "damaged": damaged,
        });
        return print(&format!("{object}\n"));
    }
    let mut text = String::new();
    for change in &history {
        let undone = match (change.undone, change.undone_in_part) {
            (true, _) => format!("  {WARNING}undone{WARNING:#}"),
            (false, true) => format!("  {WARNING}partly undone{WARNING:#}"),
            (false, false) => String::new(),
        };
        let lines = if change.only_ignored { None } else { runtime.lines_of(change) };
        let lines = lines.map_or(String::new(), |(added, removed)| {
            format!("  {ADDED}+{added}{ADDED:#} {REMOVED}-{removed}{REMOVED:#}")
        });
        let elsewhere = if change.is_partial { ELSEWHERE } else { "" };
        let _ = writeln!(
            text,
            "{NAME}{:>6}{NAME:#}  {DIM}{:<12}{DIM:#} {}{elsewhere}{lines}{undone}",
            change.id,
            change.age(),
            output::plain(&change.summary())
        );
    }
    if let (0, Some(path)) = (total, path) {
        let path = visible_name(path.as_os_str().as_encoded_bytes());
        let _ = writeln!(text, "No change of {path} is recorded here.");
    } else if total == 0 {
        text += "No changes are recorded here yet.\n";
    } else if history.len() < total {
        let _ = writeln!(text, "{DIM}{} of {total}; -n {total} shows all{DIM:#}", history.len());
    }
    for damaged in damaged.iter().rev() {
        let _ = writeln!(text, "{WARNING}{damaged}{WARNING:#}");
    }
    page(&text)
}

/// The paths that a given path may mean: itself, which may be a symlink or deleted, and its target.
fn real_paths(common: &Common, given: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", given.display());
    let from = match common.named_roots().first() {
        Some(root) => root.directory.join(given),
        None => given.to_owned(),
    };
    let absolute = std::path::absolute(from).map_err(failed)?;
    let entry = absolute.parent().zip(absolute.file_name());
    let entry = entry.map(|(parent, name)| real_path(parent).join(name));
    Ok(std::iter::once(real_path(&absolute)).chain(entry).collect())
}

fn damaged_facts(damaged: &DamagedChanges) -> Value {
    json!({
        "first": damaged.ids.start(),
        "last": damaged.ids.end(),
        "problem": damaged.to_string(),
    })
}

pub(crate) fn show(common: &Common, runtime: &Runtime, id: u64) -> Result<ExitCode, String> {
    let change = match find(runtime, id) {
        Ok(change) => change,
        Err(error) => return fail(common, error),
    };
    let diff = match runtime.diff_of(&change) {
        Ok(diff) => diff,
        Err(error) => return fail(common, error),
    };
    if !output::for_people(common) {
        let mut object = facts(&change);
        object["diff"] = diff.into();
        return print(&format!("{object}\n"));
    }
    let mut text = format!(
        "{NAME}{}{NAME:#}  {}  {DIM}allowed by {}{DIM:#}\n{}{}\n",
        change.id,
        change.age(),
        output::plain(&change.rule),
        output::plain(&change.summary()),
        if change.is_partial { ELSEWHERE } else { "" }
    );
    text += &output::diff(&diff);
    page(&text)
}

pub(crate) fn diff(runtime: &Runtime, since: Option<u64>) -> Result<ExitCode, String> {
    let diff = runtime.diff_since(since).map_err(|error| error.to_string())?;
    if diff.is_empty() {
        // On stderr: the diff may be piped into another program.
        output::note("No changes are recorded here yet, or they cancel each other.");
    }
    page(&output::diff(&diff))
}

fn find(runtime: &Runtime, id: u64) -> Result<HistoryEntry, Error> {
    let log = runtime.change_log()?;
    log.find(id).cloned().map_err(|error| match (error.kind(), log.directory_elsewhere(id)) {
        (ErrorKind::NotFound, Some(directory)) => {
            let directory = visible_name(directory.as_os_str().as_encoded_bytes());
            error.hint(format!("It is a change in another directory: add `--root {directory}`."))
        }
        (ErrorKind::NotFound, None) if error.hint_text().is_empty() => error.hint(
            "`toolcrib log` lists the changes. Only a session itself lists its changes in /tmp.",
        ),
        _ => error,
    })
}

fn facts(change: &HistoryEntry) -> Value {
    let files: Vec<Value> = change
        .files
        .iter()
        .map(|file| {
            let (before, after) = &file.hashes;
            json!({"path": file.path, "action": file.action, "before": before, "after": after})
        })
        .collect();
    let directories: Vec<Value> = change
        .directories
        .iter()
        .map(|one| json!({"path": one.path, "action": one.action}))
        .collect();
    json!({
        "id": change.id,
        "time_ms": change.time_ms,
        "tool": change.tool,
        "command": change.command,
        "only_ignored": change.only_ignored,
        "arguments": change.arguments(),
        "rule": change.rule,
        "undoes": change.undoes,
        "only": change.only,
        "undone": change.undone,
        "undone_in_part": change.undone_in_part,
        "files_elsewhere": change.is_partial,
        "files": files,
        "directories": directories,
    })
}

pub(super) fn fail(common: &Common, error: Error) -> Result<ExitCode, String> {
    let error = given_directories::in_hint(common, error);
    if output::for_people(common) {
        output::error(&error).map_err(|error| error.to_string())?;
    } else {
        print(&format!("{}\n", Value::Object(to_json(&Err(error)))))?;
    }
    Ok(ExitCode::from(1))
}

pub(super) fn print(text: &str) -> Result<ExitCode, String> {
    output::printed(anstream::stdout().write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a long text, through a pager on a terminal.
pub(super) fn page(text: &str) -> Result<ExitCode, String> {
    let tall = text.lines().count() > 40 && io::stdout().is_terminal();
    if tall && output::through_pager(text) {
        return Ok(ExitCode::SUCCESS);
    }
    print(text)
}
