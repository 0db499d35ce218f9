//! `toolcrib undo` and `toolcrib redo`.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{Call, Dialect, Error, ErrorKind, HistoryEntry, Options, Reply, Runtime, to_json};

use super::given_directories;
use super::log::{fail, print};
use crate::approve::confirm;
use crate::args::Common;
use crate::output;

/// The changes to undo, as given on the command line.
pub(crate) struct UndoSelection {
    pub(crate) id: Option<u64>,
    pub(crate) since: Option<u64>,
    pub(crate) path: Option<String>,
}

pub(crate) fn undo(
    common: &Common,
    runtime: &Runtime,
    selection: UndoSelection,
    yes: bool,
) -> Result<ExitCode, String> {
    let UndoSelection { id, since, path } = selection;
    revert(common, runtime, json!({"id": id, "since": since, "path": path}), "Undo", yes)
}

pub(crate) fn redo(common: &Common, runtime: &Runtime, yes: bool) -> Result<ExitCode, String> {
    let history = runtime.history().map_err(|error| error.to_string())?;
    let Some(undo) = history.iter().rev().find(|change| !change.undone && change.is_undo) else {
        let error = Error::new(ErrorKind::NotFound, "there is nothing to redo")
            .hint("`toolcrib log` lists the changes.");
        return fail(common, error);
    };
    let is_new_work = |change: &&HistoryEntry| {
        let is_redo = !change.redoes.is_empty();
        change.id > undo.id && !change.undone && !is_redo && !change.only_ignored
    };
    // The user thinks of the last step, and this undo may be days old.
    if let Some(newer) = history.iter().find(is_new_work) {
        let message = format!("change {} was made after the last undo", newer.id);
        let error = Error::new(ErrorKind::Conflict, message)
            .hint(format!("Nothing was done. `toolcrib undo {}` reverts that undo.", undo.id));
        return fail(common, error);
    }
    revert(common, runtime, json!({"id": undo.id}), "Redo", yes)
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
        // A question that would not be asked needs no terminal.
        let options = Options { dry_run: true, ..operator() };
        if let Err(error) = runtime.call(&session, Call::new("Undo", args.clone()), options) {
            return fail(common, error);
        }
        let error = Error::invalid("this asks a question, and there is no terminal");
        return fail(common, error.hint("Nothing was done. Pass -y to do it without a question."));
    }
    if asks {
        let preview = || {
            let options = Options { dry_run: true, ..operator() };
            runtime.call(&session, Call::new("Undo", args.clone()), options)
        };
        let shown = match preview() {
            Ok(shown) => shown,
            Err(error) => return fail(common, error),
        };
        output::printed(output::preview(&shown))?;
        warn_about_parts(runtime, &shown);
        if !confirm(&question(verb, &shown.metadata()["undone"])).unwrap_or(false) {
            return print("Nothing was done.\n");
        }
        // Other processes may have made changes since the preview: undo exactly the changes that were shown.
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
    let options = Options { dry_run: common.dry_run, ..operator() };
    let outcome = runtime.call(&session, Call::new("Undo", args), options);
    let outcome = outcome.map_err(|error| given_directories::in_hint(common, error));
    if let (false, Ok(reply)) = (asks, &outcome) {
        warn_about_parts(runtime, reply);
    }
    match &outcome {
        _ if !output::for_people(common) => {
            print(&format!("{}\n", Value::Object(to_json(&outcome))))?;
        }
        // The diff was shown in the preview.
        Ok(reply) if asks => {
            print(&format!("{}\n", output::plain(reply.output())))?;
        }
        Ok(reply) => output::printed(output::reply(reply))?,
        Err(error) => output::printed(output::error(error))?,
    }
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Options of a call that the operator makes: messages name commands instead of tools.
fn operator() -> Options<'static> {
    Options { dialect: Dialect::CommandLine, ..Options::default() }
}

/// Warns about undone changes that also changed files outside the workspace, which are not reverted.
fn warn_about_parts(runtime: &Runtime, undo: &Reply) {
    let undone = undo.metadata()["undone"].as_array().cloned().unwrap_or_default();
    let Ok(history) = runtime.history() else { return };
    for change in history.iter().filter(|change| undone.contains(&change.id.into())) {
        if change.is_partial {
            output::warning(&format!(
                "change {} also changed files outside this workspace; they are not reverted",
                change.id
            ));
        }
    }
}

/// `Undo change 7?` A redo reverts an undo, whose id means nothing to the user.
fn question(verb: &str, undone: &Value) -> String {
    match undone.as_array().map(Vec::as_slice) {
        _ if verb == "Redo" => format!("{verb}?"),
        Some([one]) => format!("{verb} change {one}?"),
        Some(several) => format!("{verb} {} changes?", several.len()),
        None => format!("{verb}?"),
    }
}
