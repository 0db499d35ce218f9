//! `cargo xtask backup`: checks backups with a server that has the interface of S3, by crates/devtools/oracles/backup.py.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, python};

/// Rounds of random changes and kills in ci.
pub(crate) const SMOKE_ROUNDS: u32 = 2;

/// Fails at the first check that fails. More rounds are a stress test.
pub(crate) fn check(rounds: u32, seed: u64) -> Result<()> {
    let binary = product::build_debug()?;
    let python = python::with_libraries("backup-requirements.txt", "backup-venv")?;
    let script = python::oracles().join("backup.py");
    let numbers = [rounds.to_string(), seed.to_string()];
    process::run(Command::new(python).arg(script).arg(binary).args(numbers))
}
