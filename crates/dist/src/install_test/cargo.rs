//! Crates: each is packaged, and built from its package and the packages of the others.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process};

use crate::release_check::published;
use crate::release_info::Release;

pub(super) fn run(_release: &Release) -> Result<()> {
    let members = metadata::of_members()?;
    let mut command = process::cargo(&["package", "--quiet", "--locked", "--allow-dirty"]);
    for package in published(&members)? {
        command.args(["--package", metadata::text(package, "name")?]);
    }
    process::run(&mut command)?;
    println!("   every crate can be built from its package");
    Ok(())
}
