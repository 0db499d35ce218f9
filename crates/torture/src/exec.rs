//! `torture exec`: no process of a command survives its end, no flood of output exhausts the server's memory,
//! and thousands of commands leak nothing.

mod at_once;
mod endings;
mod floods;
mod many;

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::LineProcess;

use super::Effort;
use super::report::Report;

/// Parts of `torture exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    Endings,
    Floods,
    Many,
    AtOnce,
}

/// Runs these parts, or all.
pub(super) fn run(parts: &[Part], effort: Effort) -> Result<()> {
    let binary = effort.build()?;
    let mut report = Report::default();
    let parts = if parts.is_empty() { Part::value_variants() } else { parts };
    for part in parts {
        let run = match part {
            Part::Endings => endings::run,
            Part::Floods => floods::run,
            Part::Many => many::run,
            Part::AtOnce => at_once::run,
        };
        let started = std::time::Instant::now();
        run(&binary, effort, &mut report)?;
        println!("   {part:?}: {:.1} s", started.elapsed().as_secs_f64());
    }
    report.finish("exec")
}

/// The profiles that run commands without approval: unconfined, or in the sandbox.
const PROFILES: [&str; 2] = ["open", "workspace"];

/// Starts a session in a directory.
fn session(binary: &Path, workspace: &Path, profile: &str) -> Result<LineProcess> {
    let mut command = Command::new(binary);
    command.args(["--profile", profile, "--state"]).arg(workspace.join("state"));
    // The user's login shell must not affect the test.
    command.arg("--root").arg(workspace).arg("run").env_remove("SHELL");
    LineProcess::start(command)
}

/// Makes a call and waits for its reply.
fn call(session: &mut LineProcess, tool: &str, args: Value) -> Result<Value> {
    session.ask(&format!("{}\n", json!({"id": 1, "tool": tool, "args": args})))
}
