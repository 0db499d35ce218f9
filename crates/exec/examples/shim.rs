//! A shim, for tests of commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolcrib_exec::run_shim()
}
