//! `cargo xtask page`: tests the app of `toolcrib page` in a browser, with a debug build of the program.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, system_packages, workspace};

/// Checks that the committed files of the app are current, and runs its tests in Chromium.
pub(crate) fn check() -> Result<()> {
    let program = product::build_debug()?;
    prepare()?;
    process::run(npm(&["test"]).env("TOOLCRIB_BINARY", program))
}

/// Writes docs/images/page-*.png.
pub(crate) fn screenshots() -> Result<()> {
    let program = product::build_debug()?;
    prepare()?;
    process::run(npm(&["run", "screenshots"]).env("TOOLCRIB_BINARY", program))
}

fn prepare() -> Result<()> {
    system_packages::CHROMIUM.obtain()?;
    process::run(&mut npm(&["ci", "--no-audit", "--no-fund"]))
}

fn npm(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(arguments).current_dir(workspace::root().join("packaging/page"));
    npm
}
