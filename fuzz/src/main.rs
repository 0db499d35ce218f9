//! Runs a target. `toolcrib-fuzz TARGET FILE…` runs it on files, to reproduce a finding. Without files it reads
//! inputs from stdin, which `cargo xtask fuzz` generates.
//!
//! An input on stdin is its length as four bytes (little-endian) and its bytes. The answer to each is a line of
//! JSON: `{"outcome": …}`, or `{"panic": …}` with the location and a backtrace.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people, and for xtask"
)]

use std::backtrace::Backtrace;
use std::error::Error;
use std::io::{Read, Write};
use std::panic::catch_unwind;
use std::process::ExitCode;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_fuzz::Target;

/// The message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    // This process may be a helper that reads a PDF or matches a pattern.
    if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((target, files)) = words.split_first() else {
        toolcrib_fuzz::TARGETS.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    };
    let Some(target) = toolcrib_fuzz::target(target) else {
        eprintln!("there is no target `{target}`");
        return ExitCode::from(2);
    };
    let result = if files.is_empty() { serve(target) } else { run_files(target, files) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run_files(target: &Target, files: &[String]) -> Result<(), Box<dyn Error>> {
    for file in files {
        println!("{file}: {}", (target.run)(&std::fs::read(file)?));
    }
    Ok(())
}

fn serve(target: &Target) -> Result<(), Box<dyn Error>> {
    std::panic::set_hook(Box::new(|info| {
        let message = format!("{info}\n{}", Backtrace::force_capture());
        // A poisoned lock still holds a valid string.
        *PANIC.lock() = message;
    }));
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    while let Some(bytes) = next_input(&mut input)? {
        writeln!(output, "{}", answer(target, &bytes))?;
        output.flush()?;
    }
    Ok(())
}

/// The next_input input; `None` at the end.
fn next_input(from: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if let Err(error) = from.read_exact(&mut length) {
        let is_end = error.kind() == std::io::ErrorKind::UnexpectedEof;
        return if is_end { Ok(None) } else { Err(error) };
    }
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn answer(target: &Target, input: &[u8]) -> Value {
    match catch_unwind(|| (target.run)(input)) {
        Ok(outcome) => json!({"outcome": outcome}),
        Err(_) => json!({"panic": *PANIC.lock()}),
    }
}
