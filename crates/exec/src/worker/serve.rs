//! The main function of a worker: confines itself, reads the input and writes the answer.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use super::confine;

/// Runs a worker: reads the input from stdin, and writes the answer to stdout or an error message to stderr.
/// Must be called first in `main`, before anything else is opened.
pub fn serve(work: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, String>) -> ExitCode {
    // If the system refuses some restrictions, the parent's limits still apply.
    let _ = confine();
    match answer(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = io::stderr().write_all(why.as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// Runs a worker that answers several questions: `work` reads questions and writes answers until the input
/// ends.
pub fn serve_conversation(
    work: impl FnOnce(&mut dyn Read, &mut dyn Write) -> io::Result<()>,
) -> ExitCode {
    let _ = confine();
    match work(&mut io::stdin().lock(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(work: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, String>) -> Result<(), String> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input).map_err(|error| error.to_string())?;
    let output = work(input)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&output).and_then(|()| stdout.flush()).map_err(|error| error.to_string())
}
