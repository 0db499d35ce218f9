//! `toolcrib jobs` and `toolcrib kill`: the commands of running servers, for the person whose machine it is.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::SystemTime;

use serde_json::{Value, json};
use toolcrib::{RunningCommand, end_command, running_commands, visible_name};

use crate::args::Common;
use crate::print;

pub(crate) fn jobs(common: &Common) -> Result<ExitCode, String> {
    let running = running_commands();
    let printed = match print::for_people(common) {
        true => list(&running),
        false => writeln!(io::stdout(), "{}", Value::Array(running.iter().map(object).collect())),
    };
    Ok(if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn kill(common: &Common, id: &str) -> Result<ExitCode, String> {
    let ended = match end_command(id) {
        Ok(ended) => ended,
        Err(error) => {
            print::usage_error(&error.text());
            return Ok(ExitCode::FAILURE);
        }
    };
    let printed = match print::for_people(common) {
        true => writeln!(io::stdout(), "Ended {id}: {ended} processes."),
        false => writeln!(io::stdout(), "{}", json!({"id": id, "ended": ended})),
    };
    Ok(if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(running: &[RunningCommand]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if running.is_empty() {
        return writeln!(stdout, "No command runs.");
    }
    for command in running {
        let names: Vec<String> =
            command.processes.iter().map(|(_, name)| visible_name(name.as_bytes())).collect();
        let age =
            command.started.and_then(|started| SystemTime::now().duration_since(started).ok());
        let age = age.map_or(0, |age| age.as_secs());
        let first = command.command.lines().next().unwrap_or_default();
        let first = visible_name(first.as_bytes());
        let directory = visible_name(command.directory.as_os_str().as_encoded_bytes());
        writeln!(stdout, "{}  {age} s  {directory}  {first}", command.id)?;
        writeln!(stdout, "    for process {}; runs {}", command.runtime, names.join(", "))?;
    }
    Ok(())
}

fn object(command: &RunningCommand) -> Value {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    json!({
        "id": command.id,
        "runtime": command.runtime,
        "command": command.command,
        "cwd": command.directory.to_string_lossy(),
        "started": command.started.and_then(since).map(|since| since.as_secs()),
        "processes": command.processes.iter().map(|(pid, name)| json!({"pid": pid, "name": name})).collect::<Vec<_>>(),
    })
}
