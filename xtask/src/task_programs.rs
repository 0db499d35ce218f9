//! Tasks that are programs of their own: bench, torture, fuzz and dist.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

pub(crate) fn bench(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-bench", "toolcrib-bench", arguments)
}

pub(crate) fn torture(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-torture", "toolcrib-torture", arguments)
}

pub(crate) fn fuzz(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-fuzz", "fuzz", arguments)
}

pub(crate) fn dist(arguments: &[impl AsRef<str>]) -> Result<()> {
    run("toolcrib-dist", "toolcrib-dist", arguments)
}

/// Builds a program and runs it on our terminal.
fn run(package: &str, program: &str, arguments: &[impl AsRef<str>]) -> Result<()> {
    let mut command = process::cargo(&["run", "--quiet", "--locked"]);
    command.args(["--package", package, "--bin", program, "--"]);
    process::run(command.args(arguments.iter().map(AsRef::as_ref)))
}
