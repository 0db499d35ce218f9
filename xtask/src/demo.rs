//! `cargo xtask demo`: four calls on this repository, as a newcomer would make them. It changes
//! nothing, and checks that.

use std::fs;
use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::error::{Result, no_arguments};
use crate::{process, product, workspace};

const FILE: &str = "rustfmt.toml";

struct Call {
    why: &'static str,
    flags: &'static [&'static str],
    tool: &'static str,
    arguments: Value,
    succeeds: bool,
}

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("demo", arguments)?;
    let binary = product::build_release()?;
    let path = workspace::root().join(FILE);
    let before = fs::read_to_string(&path)?;
    for call in calls() {
        show(&binary, &call)?;
    }
    if fs::read_to_string(&path)? == before {
        Ok(())
    } else {
        Err(format!("the demo changed {FILE}, which is a bug; `git diff {FILE}` shows it").into())
    }
}

fn calls() -> [Call; 4] {
    [
        Call {
            why: "Where something is, definitions first.",
            flags: &[],
            tool: "Grep",
            arguments: json!({"pattern": "fn main", "path": "crates/cli", "output_mode": "content"}),
            succeeds: true,
        },
        Call {
            why: "A file, by its lines.",
            flags: &[],
            tool: "Read",
            arguments: json!({"file_path": FILE, "limit": 2}),
            succeeds: true,
        },
        Call {
            why: "What an edit would do, without doing it.",
            flags: &["--dry-run"],
            tool: "Edit",
            arguments: json!({
                "file_path": FILE,
                "old_string": "max_width = 100",
                "new_string": "max_width = 120",
            }),
            succeeds: true,
        },
        Call {
            why: "An edit of what is not there: the error says what to do next.",
            flags: &[],
            tool: "Edit",
            arguments: json!({
                "file_path": FILE,
                "old_string": "max_widht = 100",
                "new_string": "max_width = 120",
            }),
            succeeds: false,
        },
    ]
}

/// Prints the command line as one would type it, then lets the command print.
fn show(binary: &Path, call: &Call) -> Result<()> {
    let mut command = Command::new("toolcrib");
    if !stdout().is_terminal() {
        // For people, though it is no terminal: a demo is read in a log, too.
        command.arg("--text");
    }
    command.args(call.flags).args(["call", call.tool, &call.arguments.to_string()]);
    println!("# {}\n$ {}", call.why, process::describe(&command));

    let status = Command::new(binary)
        .args(command.get_args())
        .current_dir(workspace::root())
        .status()
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    println!();
    if status.success() == call.succeeds {
        Ok(())
    } else {
        Err(format!("that call was not meant to end with {status}").into())
    }
}
