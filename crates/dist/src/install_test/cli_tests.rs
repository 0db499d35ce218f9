//! Runs the tests of the command line, with every Markdown case, against the shipped programs.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use crate::build::existing;
use crate::release_info::Release;
use crate::target::TARGETS;

pub(super) fn run(_release: &Release) -> Result<()> {
    for target in TARGETS.iter().filter(|target| target.runs_here()) {
        let program = existing(target)?;
        let words = ["test", "--quiet", "--locked", "-p", "toolcrib-cli", "--tests"];
        process::run(process::cargo(&words).env("TOOLCRIB_TEST_PROGRAM", &program.path))?;
        println!("   {}: the tests of the command line pass", target.name);
    }
    Ok(())
}
