//! `toolcrib log`, `show`, `diff`, `undo` and `redo`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{
    Call, ChangeLog, DamagedChanges, Error, ErrorKind, HistoryEntry, Options, Reply, Runtime,
    to_json,
};

use crate::approve::confirm;
use crate::args::Common;
use crate::output::{self, ADDED, DIM, NAME, REMOVED, WARNING};

pub(crate) fn log(common: &Common, runtime: &Runtime, limit: usize) -> Result<ExitCode, String> {
    let ChangeLog { changes: mut history, damaged } =
        runtime.change_log().map_err(|error| error.to_string())?;
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
        let _ = writeln!(
            text,
            "{NAME}{:>6}{NAME:#}  {DIM}{:<12}{DIM:#} {}{lines}{undone}",
            change.id,
            change.age(),
            output::plain(&change.summary())
        );
    }
    if total == 0 {
        text += "No changes are recorded here yet.\n";
    } else if history.len() < total {
        let _ = writeln!(text, "{DIM}{} of {total}; -n {total} shows all{DIM:#}", history.len());
    }
    for damaged in damaged.iter().rev() {
        let _ = writeln!(text, "{WARNING}{damaged}{WARNING:#}");
    }
    page(&text)
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
        "{NAME}{}{NAME:#}  {}  {DIM}allowed by {}{DIM:#}\n{}\n",
        change.id,
        change.age(),
        output::plain(&change.rule),
        output::plain(&change.summary())
    );
    text += &output::diff(&diff);
    page(&text)
}

pub(crate) fn diff(runtime: &Runtime, since: Option<u64>) -> Result<ExitCode, String> {
    let diff = runtime.diff_since(since).map_err(|error| error.to_string())?;
    page(&output::diff(&diff))
}

/// The changes to undo, as given on the command line.
pub(crate) struct UndoSelection<'a> {
    pub(crate) id: Option<u64>,
    pub(crate) since: Option<u64>,
    pub(crate) path: Option<&'a str>,
}

pub(crate) fn undo(
    common: &Common,
    runtime: &Runtime,
    selection: UndoSelection<'_>,
    yes: bool,
) -> Result<ExitCode, String> {
    let UndoSelection { id, since, path } = selection;
    revert(common, runtime, json!({"id": id, "since": since, "path": path}), "Undo", yes)
}

pub(crate) fn redo(common: &Common, runtime: &Runtime, yes: bool) -> Result<ExitCode, String> {
    let history = runtime.history().map_err(|error| error.to_string())?;
    let last = history.iter().rev().find(|change| !change.undone && change.is_undo);
    match last {
        Some(undo) => revert(common, runtime, json!({"id": undo.id}), "Redo", yes),
        None => {
            let error = Error::new(ErrorKind::NotFound, "there is nothing to redo")
                .hint("`toolcrib log` lists the changes.");
            fail(common, error)
        }
    }
}

/// Shows a preview and asks on the terminal, unless `yes`, then reverts the changes.
fn revert(
    common: &Common,
    runtime: &Runtime,
    args: Value,
    verb: &str,
    yes: bool,
) -> Result<ExitCode, String> {
    let session = runtime.session().for_one_call();
    let mut args = args;
    let asks = !yes && !common.dry_run;
    if asks && !(io::stdin().is_terminal() && output::for_people(common)) {
        let error = Error::invalid("this asks a question, and there is no terminal");
        return fail(common, error.hint("Nothing was done. Pass -y to do it without a question."));
    }
    if asks {
        let preview = || {
            let options = Options { dry_run: true, ..Options::default() };
            runtime.call(&session, Call::new("Undo", args.clone()), options)
        };
        let shown = match preview() {
            Ok(shown) => shown,
            Err(error) => return fail(common, error),
        };
        output::preview(&shown).map_err(|error| error.to_string())?;
        if !confirm(&question(verb, &shown.metadata()["undone"])).unwrap_or(false) {
            return print("Nothing was done.\n");
        }
        // Other processes may have made changes since the preview: undo exactly what was shown.
        let undone = &shown.metadata()["undone"];
        let is_same = |again: &Reply| again.metadata()["undone"] == *undone;
        if !args["since"].is_null() && !preview().is_ok_and(|again| is_same(&again)) {
            let error = Error::new(ErrorKind::Stale, "other changes were made meanwhile");
            return fail(common, error.hint("Nothing was done. Try again."));
        }
        if args["since"].is_null() {
            args["id"] = undone[0].clone();
        }
    }
    let options = Options { dry_run: common.dry_run, ..Options::default() };
    let outcome = runtime.call(&session, Call::new("Undo", args), options);
    match &outcome {
        _ if !output::for_people(common) => {
            print(&format!("{}\n", Value::Object(to_json(&outcome))))?;
        }
        // The diff was shown in the preview.
        Ok(reply) if asks => {
            print(&format!("{}\n", output::plain(reply.output())))?;
        }
        Ok(reply) => output::reply(reply).map_err(|error| error.to_string())?,
        Err(error) => output::error(error).map_err(|error| error.to_string())?,
    }
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// `Undo change 7?`
fn question(verb: &str, undone: &Value) -> String {
    match undone.as_array().map(Vec::as_slice) {
        Some([one]) => format!("{verb} change {one}?"),
        Some(several) => format!("{verb} {} changes?", several.len()),
        None => format!("{verb}?"),
    }
}

fn find(runtime: &Runtime, id: u64) -> Result<HistoryEntry, Error> {
    runtime.change_log()?.find(id).cloned().map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.hint(
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
        "files": files,
        "directories": directories,
    })
}

fn fail(common: &Common, error: Error) -> Result<ExitCode, String> {
    if output::for_people(common) {
        output::error(&error).map_err(|error| error.to_string())?;
    } else {
        print(&format!("{}\n", Value::Object(to_json(&Err(error)))))?;
    }
    Ok(ExitCode::from(1))
}

pub(super) fn print(text: &str) -> Result<ExitCode, String> {
    match anstream::stdout().write_all(text.as_bytes()) {
        // The reader may close the pipe early.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot print: {error}"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints a long text, through a pager on a terminal.
pub(super) fn page(text: &str) -> Result<ExitCode, String> {
    let tall = text.lines().count() > 40 && io::stdout().is_terminal();
    if tall && output::through_pager(text) {
        return Ok(ExitCode::SUCCESS);
    }
    print(text)
}
