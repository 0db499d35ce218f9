//! `cargo xtask sandboxd`: checks `toolcrib sandboxd` with the client of Kubernetes' agent-sandbox, by
//! crates/devtools/oracles/sandboxd.py.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, python};

/// Fails at the first check that fails.
pub(crate) fn check() -> Result<()> {
    let binary = product::build_debug()?;
    let python = python::with_libraries("sandboxd-requirements.txt", "sandboxd-venv")?;
    process::run(Command::new(python).arg(python::oracles().join("sandboxd.py")).arg(binary))
}
