//! `bench text`: what reading and editing text costs, in large files and in small ones. Each part
//! against a program that does no more than must be done, in turns, so that whatever slows the machine
//! down slows both. The targets stand in the tables.

mod calls;
mod edit;
mod lines;
mod numbered;

use super::Rounds;
use crate::error::Result;
use crate::{process, workspace};

/// Fewer rounds than these only show that it works: then the files are small.
const TO_MEASURE: usize = 5;

pub(super) fn run(rounds: Rounds) -> Result<()> {
    let binary = rounds.build()?;
    // On the disk that the repository is on, and not in memory: an edit waits for it.
    let directory = workspace::cache_directory()?;
    lines::run(&binary, &directory, rounds)?;
    edit::run(&binary, &directory, rounds)?;
    calls::run(&binary, &directory, rounds)?;
    inside()
}

/// What can be measured only from inside.
fn inside() -> Result<()> {
    let words = [
        "run",
        "--quiet",
        "--profile",
        "dist",
        "--locked",
        "-p",
        "toolcrib-text",
        "--example",
        "text_properties",
    ];
    process::run(&mut process::cargo(&words))
}
