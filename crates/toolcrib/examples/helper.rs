//! A host that is only a helper. The tests of the library start it, since they cannot change their own `main`.

#![allow(clippy::disallowed_methods, reason = "a program reads its arguments")]

use std::process::ExitCode;

fn main() -> ExitCode {
    toolcrib::run_helper(std::env::args_os()).unwrap_or(ExitCode::from(2))
}
