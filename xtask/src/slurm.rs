//! `cargo xtask slurm`: runs examples/slurm on a Slurm cluster of one node, made in a temporary directory. Needs root.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, system_packages, workspace};

pub(crate) fn check() -> Result<()> {
    for package in [system_packages::SLURM, system_packages::MUNGE] {
        package.obtain()?;
    }
    let script = workspace::root().join("examples/slurm/test_slurm.py");
    process::run(Command::new("python3").arg(script).arg(product::build_debug()?))
}
