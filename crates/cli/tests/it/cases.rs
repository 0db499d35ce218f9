//! The Markdown cases of the library, through the program.

use std::path::PathBuf;

use toolcrib_testkit::{CallDoor, McpDoor, RunDoor, run_cases};

use crate::PROGRAM;

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../toolcrib/cases")
}

#[test]
fn cases_through_call() {
    run_cases(&cases(), |workspace, setup| CallDoor::open(PROGRAM, workspace, setup));
}

#[test]
fn cases_through_run() {
    run_cases(&cases(), |workspace, setup| RunDoor::open(PROGRAM, workspace, setup));
}

#[test]
fn cases_through_mcp() {
    run_cases(&cases(), |workspace, setup| McpDoor::open(PROGRAM, workspace, setup));
}
