//! Runs the Markdown cases of the library through the program. Each case is a test of its own for each transport.

use std::path::Path;
use std::process::ExitCode;

use toolcrib_testkit::libtest_mimic::{Arguments, run};
use toolcrib_testkit::{CallTransport, McpTransport, RunTransport, case_tests};

/// The program to test. A release sets its own.
const PROGRAM: &str = match option_env!("TOOLCRIB_TEST_PROGRAM") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_toolcrib"),
};

fn main() -> ExitCode {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolcrib/cases");
    let call = case_tests("call", &cases, |workspace, setup| {
        CallTransport::open(PROGRAM, workspace, setup)
    });
    let run_lines =
        case_tests("run", &cases, |workspace, setup| RunTransport::open(PROGRAM, workspace, setup));
    let mcp =
        case_tests("mcp", &cases, |workspace, setup| McpTransport::open(PROGRAM, workspace, setup));
    run(&Arguments::from_args(), [call, run_lines, mcp].into_iter().flatten().collect()).exit_code()
}
