//! `bench files`: what it costs that files cannot be lost. Each part against what one would do without
//! the product, in turns, so that whatever slows the machine down slows both.

mod listing;
mod processes;
mod replace;

use super::Rounds;
use crate::error::Result;
use crate::{process, workspace};

/// Fewer rounds than these only show that it works: then what takes long to prepare is made small.
const TO_MEASURE: usize = 10;

pub(super) fn run(rounds: Rounds) -> Result<()> {
    let binary = rounds.build()?;
    // On the disk that the repository is on, and not in memory: syncing is most of the cost.
    let directory = workspace::cache_directory()?;
    replace::run(&binary, &directory, rounds)?;
    listing::run(&binary, &directory, rounds)?;
    processes::run(&binary, &directory, rounds)?;
    inside()
}

/// What can be measured only from inside: the library leaf's own examples, each against its peer.
fn inside() -> Result<()> {
    for example in ["atomic_replace", "confined_open"] {
        println!();
        let words = [
            "run",
            "--quiet",
            "--profile",
            "dist",
            "--locked",
            "-p",
            "toolcrib-fs",
            "--example",
            example,
        ];
        let mut command = process::cargo(&words);
        // They write where they are started, which need not be beneath this repository.
        command.arg("--manifest-path").arg(workspace::root().join("Cargo.toml"));
        process::run(command.current_dir(workspace::cache_directory()?))?;
    }
    Ok(())
}
