//! A helper and nothing else: what a host is when it was started as one. For tests of the library, whose
//! own program is not theirs to begin.

#![allow(clippy::disallowed_methods, reason = "a program reads its arguments")]

use std::process::ExitCode;

fn main() -> ExitCode {
    toolcrib::run_helper(std::env::args_os()).unwrap_or(ExitCode::from(2))
}
