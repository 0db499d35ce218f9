//! The command line of Toolcrib, for people and for programs.
//!
//! It reads arguments, environment and terminal, calls the library and prints the replies. It does not decide what
//! a tool does.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line reads its arguments, environment and input, and passes them to the library"
)]

mod approve;
mod args;
mod bounded_input;
mod build_caches;
mod commands;
mod config;
mod foreign_roots;
mod host_name;
mod injected_credentials;
#[cfg(test)]
mod memory_compare_tests;
mod network_presets;
mod optional_file;
mod output;
mod rules;
mod ssh;
mod wide_roots;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
        return code;
    }
    let parsed = args::Args::of_process();
    let args = parsed.unwrap_or_else(|error| args::with_known_values(error).exit());
    if args.command.has_runtime() {
        toolcrib::raise_nofile_limit();
    }
    let outcome = args.check_repeated(std::env::args_os()).and_then(|()| commands::run(args));
    match outcome {
        Ok(code) => code,
        Err(usage) => {
            output::usage_error(&usage);
            ExitCode::from(2)
        }
    }
}
