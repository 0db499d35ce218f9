//! `torture fs`: no access outside the workspace, no torn file, no lost change.

mod editors;
mod full_disk;
mod injection;
mod kills;
mod racers;

use clap::ValueEnum;
use toolcrib_devtools::error::Result;

use super::Effort;
use super::report::Report;

/// Parts of `torture fs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    Racers,
    Injection,
    Kills,
    FullDisk,
    Editors,
}

/// Runs these parts, or all.
pub(super) fn run(parts: &[Part], effort: Effort) -> Result<()> {
    let binary = effort.build()?;
    let mut report = Report::default();
    let parts = if parts.is_empty() { Part::value_variants() } else { parts };
    for part in parts {
        let run = match part {
            Part::Racers => racers::run,
            Part::Injection => injection::run,
            Part::Kills => kills::run,
            Part::FullDisk => full_disk::run,
            Part::Editors => editors::run,
        };
        let started = std::time::Instant::now();
        run(&binary, effort, &mut report)?;
        println!("   {part:?}: {:.1} s", started.elapsed().as_secs_f64());
    }
    report.finish("fs")
}
