//! `cargo xtask servers`: edits with real language servers, by crates/devtools/oracles/language_servers.py. ruff and ty
//! are installed; the others are used if they are on the `PATH`.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, python};

/// Fails at the first wrong or missing error.
pub(crate) fn check() -> Result<()> {
    let binary = product::build_debug()?;
    let python = python::with_libraries("language-servers.txt", "language-servers-venv")?;
    let script = python::oracles().join("language_servers.py");
    process::run(Command::new(python).arg(script).arg(binary))
}
