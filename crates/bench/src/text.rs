//! `bench text`: the cost of reading and editing text in large and small files. Each part is compared with a
//! program that does only the necessary work. Both alternate, so that a slow phase of the machine affects both.
//! The tables list the targets.

mod large_edit;
mod large_read;
mod sample_text;
mod small_reads;

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, process};

use super::Rounds;
use super::report::Report;

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    // On the disk of the repository rather than in memory: an edit waits for it.
    let directory = cache::directory()?;
    report.add(&large_read::run(&binary, &directory, rounds)?);
    report.add(&large_edit::run(&binary, &directory, rounds)?);
    report.add(&small_reads::run(&binary, &directory, rounds)?);
    run_examples(rounds)
}

/// In-process measurements: the examples of the text crate.
fn run_examples(rounds: Rounds) -> Result<()> {
    let example = rounds.build_example("toolcrib-text", "measure_text_properties")?;
    let megabytes = if rounds.is_smoke { "1" } else { "100" };
    process::run(Command::new(example).arg(megabytes))
}
