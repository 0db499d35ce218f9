//! Runs the Markdown cases in this process. Each case is a test of its own.

use std::path::Path;
use std::process::ExitCode;

use toolcrib_testkit::libtest_mimic::{Arguments, run};
use toolcrib_testkit::{InProcessTransport, case_tests};

fn main() -> ExitCode {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let tests = case_tests("in_process", &cases, InProcessTransport::open);
    run(&Arguments::from_args(), tests).exit_code()
}
