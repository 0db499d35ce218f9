//! Runs the Markdown cases in this process.

use std::path::Path;

use toolcrib_testkit::{InProcessTransport, run_cases};

#[test]
fn cases_in_process() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    run_cases(&cases, InProcessTransport::open);
}
