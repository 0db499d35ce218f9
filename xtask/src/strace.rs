//! strace: what a program asks the system for.

use std::process::Command;

use crate::error::Result;
use crate::process;

/// Sees to it that strace is there, from the system's packages if need be.
pub(crate) fn obtain() -> Result<()> {
    let probe = || process::probe(Command::new("strace").arg("--version")).is_some();
    if probe() {
        return Ok(());
    }
    println!("strace is not installed: trying apt-get");
    let install = ["install", "--yes", "--quiet", "strace"];
    let _ = process::probe(Command::new("apt-get").arg("update"));
    let _ = process::probe(Command::new("apt-get").args(install));
    match probe() {
        true => Ok(()),
        false => Err("strace is not installed, and apt-get cannot install it".into()),
    }
}
