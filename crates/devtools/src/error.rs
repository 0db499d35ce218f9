//! The error type of the development programs.

use std::error::Error;
use std::process::ExitCode;

/// Boxed, because these errors are only printed.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Prints the error of a program and returns its exit code.
pub fn exit_code(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
