//! Runs the Markdown cases of the library through the program.

use std::path::PathBuf;

use toolcrib_testkit::{CallTransport, McpTransport, RunTransport, run_cases};

use crate::PROGRAM;

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../toolcrib/cases")
}

#[test]
fn cases_through_call() {
    run_cases(&cases(), |workspace, setup| CallTransport::open(PROGRAM, workspace, setup));
}

#[test]
fn cases_through_run() {
    run_cases(&cases(), |workspace, setup| RunTransport::open(PROGRAM, workspace, setup));
}

#[test]
fn cases_through_mcp() {
    run_cases(&cases(), |workspace, setup| McpTransport::open(PROGRAM, workspace, setup));
}
