//! Runs a target: `toolcrib-fuzz TARGET FILE…` on files, to see a finding again; without a file on inputs
//! from stdin, for `cargo xtask fuzz`, which makes them.
//!
//! An input there is its length, four bytes with the least first, and its bytes. Each is answered with a
//! line of JSON: `{"outcome": …}`, or `{"panic": …}` with the place and a backtrace.

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
use std::sync::Mutex;

use serde_json::{Value, json};
use toolcrib_fuzz::Target;

/// What the last panic said.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    // As a child of ourselves, to read a PDF or to match a pattern.
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
    let done = if files.is_empty() { serve(target) } else { try_files(target, files) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn try_files(target: &Target, files: &[String]) -> Result<(), Box<dyn Error>> {
    for file in files {
        println!("{file}: {}", (target.run)(&std::fs::read(file)?));
    }
    Ok(())
}

fn serve(target: &Target) -> Result<(), Box<dyn Error>> {
    std::panic::set_hook(Box::new(|info| {
        let said = format!("{info}\n{}", Backtrace::force_capture());
        // Poisoned or not, what it holds is a string.
        *PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = said;
    }));
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    while let Some(bytes) = next(&mut input)? {
        writeln!(output, "{}", answer(target, &bytes))?;
        output.flush()?;
    }
    Ok(())
}

/// The next input; nothing, if there is none.
fn next(from: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
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
        Err(_) => json!({"panic": *PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner())}),
    }
}
