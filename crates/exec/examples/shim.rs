//! A keeper and nothing else, for tests of commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolcrib_exec::run_shim()
}
