//! Judges from outside: libraries of others, in Python, that say whether what we print and write is right.

use std::process::Command;

use crate::error::Result;
use crate::{process, product, python};

/// Has a script of xtask/oracles judge the product; it is given the path of the binary.
pub(crate) fn judge(script: &str) -> Result<()> {
    let binary = product::build_debug()?;
    let python = python::with_libraries("requirements.txt", "oracles-venv")?;
    process::run(Command::new(python).arg(python::oracles().join(script)).arg(binary))
}
