//! Crates: packaged, each built from its package alone, and the program installed from them.

use crate::dist::release::Release;
use crate::error::Result;
use crate::process;

pub(super) fn run(_release: &Release) -> Result<()> {
    process::run(&mut process::cargo(&["package", "--workspace", "--locked", "--allow-dirty"]))
}
