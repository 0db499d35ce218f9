//! The child's side of a worker: everything given up, then bytes in, bytes out.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use super::confine;

/// Does a worker's work: takes its input from stdin and puts the answer on stdout, or why there is none
/// on stderr. To be called first thing in `main`, before anything else is open.
pub fn serve(work: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, String>) -> ExitCode {
    // What this system would not let us give up is missing; the parent's limits hold all the same.
    let _ = confine();
    match answer(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = io::stderr().write_all(why.as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// The same for a worker that is asked several times: `work` reads questions and writes answers until there
/// are no more.
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
