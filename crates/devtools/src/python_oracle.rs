//! Runs Python scripts that check our output with third-party libraries.

use std::process::Command;

use crate::error::Result;
use crate::{process, product, python};

/// Runs a script of crates/devtools/oracles with the path of the binary. Fails if the script does.
pub fn judge(script: &str) -> Result<()> {
    let binary = product::build_debug()?;
    let python = python::with_libraries("requirements.txt", "oracles-venv")?;
    process::run(Command::new(python).arg(python::oracles().join(script)).arg(binary))
}
