//! `toolcrib jobs` and `toolcrib kill`: the running commands of all servers of this user.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::SystemTime;

use serde_json::{Value, json};
use toolcrib::{RunningCommand, end_command, running_commands, visible_name};

use super::log::fail;
use crate::approve::confirm;
use crate::args::Common;
use crate::output;

pub(crate) fn jobs(common: &Common) -> Result<ExitCode, String> {
    let running = running_commands();
    let printed = if output::for_people(common) {
        list(&running)
    } else {
        writeln!(io::stdout(), "{}", Value::Array(running.iter().map(object).collect()))
    };
    output::printed(printed)?;
    Ok(ExitCode::SUCCESS)
}

/// Ends a command. Asks first if it belongs to another workspace.
pub(crate) fn kill(common: &Common, id: &str, yes: bool) -> Result<ExitCode, String> {
    let running = running_commands().into_iter().find(|command| command.id == id);
    if let Some(other) = running.filter(|command| !yes && !is_of_this_workspace(common, command)) {
        let about = format!("{id} belongs to another workspace: {}", owner(&other));
        if !io::stdin().is_terminal() || !output::for_people(common) {
            output::usage_error(&format!("{about}. Use --yes to end it anyway"));
            return Ok(ExitCode::FAILURE);
        }
        let question = format!("{about}, running {}. End it?", first_line(&other));
        if !confirm(&question).unwrap_or(false) {
            output::note("Nothing was done.");
            return Ok(ExitCode::FAILURE);
        }
    }
    let ended = match end_command(id) {
        Ok(ended) => ended,
        Err(error) if output::for_people(common) => {
            output::usage_error(&error.text());
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return fail(common, error),
    };
    let printed = if output::for_people(common) {
        let processes = if ended == 1 { "process" } else { "processes" };
        writeln!(io::stdout(), "Ended {id}: {ended} {processes}.")
    } else {
        writeln!(io::stdout(), "{}", json!({"id": id, "ended": ended}))
    };
    output::printed(printed)?;
    Ok(ExitCode::SUCCESS)
}

fn list(running: &[RunningCommand]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if running.is_empty() {
        return writeln!(stdout, "No commands are running.");
    }
    for command in running {
        let names: Vec<String> =
            command.processes.iter().map(|(_, name)| visible_name(name.as_bytes())).collect();
        let age =
            command.started.and_then(|started| SystemTime::now().duration_since(started).ok());
        let age = age.map_or(0, |age| age.as_secs());
        let first = first_line(command);
        let directory = visible_name(command.directory.as_os_str().as_encoded_bytes());
        writeln!(stdout, "{}  {age} s  {directory}  {first}", command.id)?;
        writeln!(stdout, "    {}; processes: {}", owner(command), names.join(", "))?;
    }
    Ok(())
}

/// Whether a command was started in one of the given roots.
fn is_of_this_workspace(common: &Common, command: &RunningCommand) -> bool {
    let roots = common.roots();
    let roots = roots.iter().filter_map(|root| root.directory.canonicalize().ok());
    let workspace = command.workspace.as_ref().and_then(|path| path.canonicalize().ok());
    roots.into_iter().any(|root| Some(root) == workspace)
}

/// The owner of a command: `workspace /w, user me, process 17`.
fn owner(command: &RunningCommand) -> String {
    let workspace = match &command.workspace {
        Some(workspace) => visible_name(workspace.as_os_str().as_encoded_bytes()),
        None => "unknown".to_owned(),
    };
    let user = visible_name(command.user.as_bytes());
    format!("workspace {workspace}, user {user}, process {}", command.runtime)
}

fn first_line(command: &RunningCommand) -> String {
    visible_name(command.command.lines().next().unwrap_or_default().as_bytes())
}

fn object(command: &RunningCommand) -> Value {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    json!({
        "id": command.id,
        "runtime": command.runtime,
        "workspace": command.workspace.as_ref().map(|workspace| workspace.to_string_lossy()),
        "user": command.user,
        "command": command.command,
        "cwd": command.directory.to_string_lossy(),
        "started": command.started.and_then(since).map(|since| since.as_secs()),
        "processes": command.processes.iter().map(|(pid, name)| json!({"pid": pid, "name": name})).collect::<Vec<_>>(),
    })
}
