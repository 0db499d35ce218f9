//! `toolcrib backup`: copies a workspace once, and checks and restores backups; and the backups of a server.

mod served;
mod server;

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use toolcrib::{age, size_text, visible_name};
use toolcrib_backup::{
    Copied, LeftOut, LocalStatus, Restore, Restored, Summary, Verified, copy_now, restore,
    summarize, verify,
};

pub(super) use self::served::ServedBackup;
use self::server::BackupServer;
use crate::args::{BackupCommand, Common};
use crate::commands::{runtime_with, state};
use crate::config::Config;
use crate::host_name::host_name;
use crate::output;

pub(crate) fn run(common: &Common, command: &BackupCommand) -> Result<ExitCode, String> {
    match command {
        BackupCommand::Now { address } => now(common, address),
        BackupCommand::Status { address: Some(address), segment } => {
            status_there(common, address, *segment)
        }
        BackupCommand::Status { address: None, .. } => status_here(common),
        BackupCommand::Verify { address } => verified(common, address),
        BackupCommand::Restore { address, directory, segment, take_over } => {
            restored(common, address, directory, *segment, *take_over)
        }
    }
}

fn now(common: &Common, address: &str) -> Result<ExitCode, String> {
    let server = BackupServer::find(address)?;
    let runtime = runtime_with(common, &server.files, None, None)?;
    let source = runtime.backup_source().map_err(|error| error.text().to_string())?;
    let copied = copy_now(source, server.objects(), &host_name());
    let Some(copied) = copied.map_err(|error| error.to_string())? else {
        output::answer("A server on this machine copies the workspace to this backup already.");
        return Ok(ExitCode::SUCCESS);
    };
    if output::for_people(common) {
        output::answer(&copied_text(&copied, address));
    } else {
        let left_out = left_out_json(&copied.left_out);
        output::answer(
            &json!({"segment": copied.segment, "new": copied.is_new, "left_out": left_out})
                .to_string(),
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn copied_text(copied: &Copied, address: &str) -> String {
    let what = if copied.is_new { "The workspace was copied" } else { "Nothing has changed" };
    let left_out = left_out_text(&copied.left_out);
    format!("{what}. {address} has segment {} as its last.{left_out}", copied.segment)
}

fn status_there(common: &Common, address: &str, segment: Option<u64>) -> Result<ExitCode, String> {
    let server = BackupServer::find(address)?;
    let Some(found) = summarize(&server.objects(), segment).map_err(|error| error.to_string())?
    else {
        output::answer(&format!("There is no backup at {address}."));
        return Ok(ExitCode::FAILURE);
    };
    if output::for_people(common) {
        output::answer(&summary_text(&found, address));
    } else {
        output::answer(&summary_json(&found).to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// The backups of this workspace that servers of this machine make, as the state directory says.
fn status_here(common: &Common) -> Result<ExitCode, String> {
    let backups = of_workspace(common)?;
    let as_json = |one: &LocalStatus| {
        json!({
            "address": one.address,
            "segment": one.segment,
            "copied_ms": one.copied_ms,
            "problem": one.problem,
        })
    };
    if output::for_people(common) {
        let none = "No server of this machine has copied this workspace to a backup.";
        output::lines(&backups, local_text, none);
    } else {
        output::json_list("backups", &backups, as_json);
    }
    let is_well = backups.iter().all(|one| one.problem.is_none());
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The backups of the roots.
fn of_workspace(common: &Common) -> Result<Vec<LocalStatus>, String> {
    let Some(directory) = state(common)?.filter(|state| state.exists()) else {
        return Ok(Vec::new());
    };
    let roots = common.roots().into_iter();
    let roots: Vec<_> = roots.filter_map(|root| root.directory.canonicalize().ok()).collect();
    let mut all = LocalStatus::all(&directory).map_err(|error| error.to_string())?;
    all.retain(|one| roots.contains(&one.root));
    all.sort_by(|one, other| one.address.cmp(&other.address));
    Ok(all)
}

/// A line for `doctor` about the backups of this workspace. `None` if there is none.
pub(super) fn finding(common: &Common) -> Option<Result<String, String>> {
    let backups = match of_workspace(common) {
        Ok(backups) => backups,
        Err(problem) => return Some(Err(problem)),
    };
    let lines: Vec<String> = backups.iter().map(local_text).collect();
    Some(Ok(lines.join("; "))).filter(|_| !lines.is_empty())
}

fn local_text(one: &LocalStatus) -> String {
    let copied = match one.copied_ms {
        0 => "nothing was copied yet".to_owned(),
        copied => format!("has all changes until {}", age(copied)),
    };
    match &one.problem {
        None => format!("{}: {copied}", one.address),
        Some(problem) => format!("{}: {copied}, and then: {}", one.address, output::plain(problem)),
    }
}

fn verified(common: &Common, address: &str) -> Result<ExitCode, String> {
    let server = BackupServer::find(address)?;
    let checked = verify(&server.objects()).map_err(|error| error.to_string())?;
    let is_right = checked.problems.is_empty();
    if output::for_people(common) {
        output::answer(&verified_text(&checked, address));
    } else {
        let mut found = summary_json(&checked.summary);
        found["contents"] = checked.contents.into();
        found["changes"] = checked.changes.into();
        found["missing_for_undo"] = checked.missing_for_undo.into();
        found["problems"] = checked.problems.clone().into();
        output::answer(&found.to_string());
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verified_text(checked: &Verified, address: &str) -> String {
    let mut text = summary_text(&checked.summary, address);
    let (contents, changes) = (checked.contents, checked.changes);
    if checked.problems.is_empty() {
        text +=
            &format!("\nAll {contents} contents are intact. The history has {changes} changes.");
    } else {
        text += "\nDAMAGED: it cannot be restored.";
        for problem in &checked.problems {
            text += &format!("\n- {problem}");
        }
    }
    text + &missing_text(checked.missing_for_undo)
}

fn restored(
    common: &Common,
    address: &str,
    directory: &Path,
    segment: Option<u64>,
    takes_over: bool,
) -> Result<ExitCode, String> {
    let server = BackupServer::find(address)?;
    let state = state(common)?.ok_or("the state directory is unknown: name one with --state")?;
    let machine = host_name();
    let options = Restore {
        directory,
        state: &state,
        caps: Config::of(common)?.journal_caps(),
        machine: &machine,
        segment,
        takes_over,
    };
    let restored = restore(&server.objects(), &options).map_err(|error| error.to_string())?;
    if output::for_people(common) {
        output::answer(&restored_text(&restored, address, takes_over));
    } else {
        let mut found = summary_json(&restored.summary);
        found["directory"] = restored.directory.display().to_string().into();
        found["changes"] = restored.changes.into();
        found["missing_for_undo"] = restored.missing_for_undo.into();
        output::answer(&found.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn restored_text(restored: &Restored, address: &str, takes_over: bool) -> String {
    let next = if takes_over {
        format!(" `toolcrib serve --backup {address}` continues the backup here.")
    } else {
        String::new()
    };
    format!(
        "{} has the files of {} as of {}, and {} changes in its history.{next}{}{}",
        restored.directory.display(),
        shown_path(&restored.summary.root),
        age(restored.summary.time_ms),
        restored.changes,
        left_out_text(&restored.summary.left_out),
        missing_text(restored.missing_for_undo),
    )
}

fn missing_text(missing: u64) -> String {
    match missing {
        0 => String::new(),
        missing => format!("\n{missing} contents for Undo are not in the backup."),
    }
}

fn summary_text(found: &Summary, address: &str) -> String {
    format!(
        "{address} has {} files and directories of {} on {}, {}, as of {} (segment {}).{}",
        found.entries,
        shown_path(&found.root),
        visible_name(found.machine.as_bytes()),
        size_text(found.bytes),
        age(found.time_ms),
        found.segment,
        left_out_text(&found.left_out),
    )
}

fn summary_json(found: &Summary) -> serde_json::Value {
    json!({
        "segment": found.segment,
        "time_ms": found.time_ms,
        "machine": found.machine,
        "root": found.root.display().to_string(),
        "entries": found.entries,
        "bytes": found.bytes,
        "left_out": left_out_json(&found.left_out),
    })
}

fn left_out_json(left_out: &LeftOut) -> serde_json::Value {
    json!({
        "hidden": left_out.hidden,
        "ignored_directories": left_out.ignored_directories,
        "special": left_out.special,
        "unreadable": left_out.unreadable,
        "too_large": left_out.too_large,
    })
}

fn left_out_text(left_out: &LeftOut) -> String {
    let all = [
        (left_out.ignored_directories, "ignored directories"),
        (left_out.hidden, "hidden paths"),
        (left_out.special, "sockets, FIFOs or devices"),
        (left_out.unreadable, "paths that cannot be read"),
        (left_out.too_large, "files over 4 GiB"),
    ];
    let words = all.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = words.map(|(count, what)| format!("{count} {what}")).collect();
    if words.is_empty() { String::new() } else { format!(" Not copied: {}.", words.join(", ")) }
}

/// A path from a backup, in one line.
fn shown_path(path: &Path) -> String {
    visible_name(path.as_os_str().as_encoded_bytes())
}
