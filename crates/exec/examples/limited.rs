//! Runs a program as a worker: `limited PROGRAM [ARGUMENT…]`, input on stdin, answer on stdout.
//!
//! For evaluations and for use by hand. The exit code is 0, 1 if the program failed, 124 if it took too long,
//! and 125 for other failures.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program for people and evaluations"
)]

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use toolcrib_exec::{Worker, WorkerError, WorkerLimits};

const LIMITS: WorkerLimits = WorkerLimits {
    memory_bytes: 2 << 30,
    cpu_seconds: 20,
    wall: Duration::from_secs(30),
    output_bytes: 256 << 20,
};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: limited PROGRAM [ARGUMENT…]");
        return ExitCode::from(2);
    };
    match answer(PathBuf::from(program), words.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(match error.downcast_ref::<WorkerError>() {
                Some(WorkerError::Failed { .. }) => 1,
                Some(WorkerError::TimedOut) => 124,
                _ => 125,
            })
        }
    }
}

fn answer(program: PathBuf, arguments: Vec<OsString>) -> Result<(), Box<dyn std::error::Error>> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let output = Worker { program, arguments, limits: LIMITS }.run(&input, &|| false)?;
    std::io::stdout().write_all(&output)?;
    Ok(())
}
