//! Installs the artefacts in `dist/` as users do, and uses them.
//!
//! Registries are local, and every installation has a home directory of its own. Nothing is published.

mod cargo;
mod cli_tests;
mod deb;
mod emulated;
mod fresh_debian;
mod image;
mod listening_process;
mod new_user;
mod npm;
mod python;
mod reproduced;

use clap::ValueEnum;
use toolcrib_devtools::error::Result;

use super::release_info::Release;

/// Parts of the test, the quick ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    Deb,
    Image,
    Npm,
    Python,
    Program,
    Emulated,
    Cargo,
    Reproduced,
}

impl Part {
    fn run(self, release: &Release) -> Result<()> {
        match self {
            Part::Deb => deb::run(release),
            Part::Image => image::run(release),
            Part::Npm => npm::run(release),
            Part::Python => python::run(release),
            Part::Program => cli_tests::run(release),
            Part::Emulated => emulated::run(release),
            Part::Cargo => cargo::run(release),
            Part::Reproduced => reproduced::run(release),
        }
    }
}

/// Runs these parts, or all.
pub(super) fn run(parts: &[Part]) -> Result<()> {
    let release = Release::current()?;
    let is_chosen = |part: &&Part| parts.is_empty() || parts.contains(part);
    for part in Part::value_variants().iter().filter(is_chosen) {
        println!("── {part:?}");
        part.run(&release)?;
    }
    Ok(())
}
