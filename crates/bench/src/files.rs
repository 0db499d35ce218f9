//! `bench files`: the cost of crash safety and journaling. Each part is compared with the usual way without
//! Toolcrib. Both alternate, so that a slow phase of the machine affects both.

mod listing;
mod one_shot_edit;
mod replace;

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, process};

use super::Rounds;
use super::report::Report;

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    // On the disk of the repository rather than in memory: syncing is most of the cost.
    let directory = cache::directory()?;
    report.add(&replace::run(&binary, &directory, rounds)?);
    report.add(&listing::run(&binary, &directory, rounds)?);
    report.add(&one_shot_edit::run(&binary, &directory, rounds)?);
    run_examples(rounds)
}

/// In-process measurements: the examples of the fs crate, each compared with its peer.
fn run_examples(rounds: Rounds) -> Result<()> {
    for name in ["measure_replace", "measure_open"] {
        println!();
        let example = rounds.build_example("toolcrib-fs", name)?;
        // They write to their working directory.
        process::run(Command::new(example).current_dir(cache::directory()?))?;
    }
    Ok(())
}
