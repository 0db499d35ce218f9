//! Tasks that are programs of their own: bench, torture, fuzz and dist.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, workspace};

pub(crate) fn bench(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-bench", arguments)
}

pub(crate) fn torture(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-torture", arguments)
}

pub(crate) fn fuzz(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("fuzz", arguments)
}

pub(crate) fn dist(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-dist", arguments)
}

/// Builds a program and runs it on our terminal.
fn run(program: &str, arguments: &[impl AsRef<str>]) -> Result<()> {
    let mut command = Command::new(product::build_debug_program(program)?);
    command.args(arguments.iter().map(AsRef::as_ref)).current_dir(workspace::root());
    process::run(&mut command)
}
