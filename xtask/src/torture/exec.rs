//! `torture exec`: no process of a command survives its end, no flood of output exhausts the server's memory,
//! and thousands of commands leak nothing.

mod at_once;
mod endings;
mod floods;
mod many;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Effort;
use super::report::Report;
use crate::conversation::Conversation;
use crate::error::Result;
use crate::nearest;

struct Part {
    name: &'static str,
    run: fn(&Path, Effort, &mut Report) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part { name: "endings", run: endings::run },
    Part { name: "floods", run: floods::run },
    Part { name: "many", run: many::run },
    Part { name: "at-once", run: at_once::run },
];

/// Runs all parts, or the named ones.
pub(super) fn run(names: &[String], effort: Effort) -> Result<()> {
    for name in names {
        if !PARTS.iter().any(|part| part.name == name) {
            return Err(nearest::unknown("part", name, PARTS.iter().map(|part| part.name)).into());
        }
    }
    let binary = effort.build()?;
    let mut report = Report::default();
    let wanted = |part: &&Part| names.is_empty() || names.iter().any(|name| name == part.name);
    for part in PARTS.iter().filter(wanted) {
        let started = std::time::Instant::now();
        (part.run)(&binary, effort, &mut report)?;
        println!("   {}: {:.1} s", part.name, started.elapsed().as_secs_f64());
    }
    report.finish("exec")
}

/// The profiles that run commands without approval: unconfined, or in the sandbox.
const PROFILES: [&str; 2] = ["open", "workspace"];

/// Starts a session in a directory.
fn session(binary: &Path, workspace: &Path, profile: &str) -> Result<Conversation> {
    let mut command = Command::new(binary);
    command.args(["--profile", profile, "--state"]).arg(workspace.join("state"));
    // The user's login shell must not affect the test.
    command.arg("--root").arg(workspace).arg("run").env_remove("SHELL");
    Conversation::start(command)
}

/// Makes a call and waits for its reply.
fn call(session: &mut Conversation, tool: &str, args: Value) -> Result<Value> {
    session.ask(&format!("{}\n", json!({"id": 1, "tool": tool, "args": args})))
}
