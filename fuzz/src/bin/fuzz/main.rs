//! Runs the fuzz targets on many mutated inputs.
//!
//! A target runs in its own process, `toolcrib-fuzz`: a stack overflow or a hang is a finding like any other. Inputs are
//! generated here from the seeds in `fuzz/seeds` and are the same for the same `--seed`. With a nightly compiler and
//! cargo-fuzz, libFuzzer runs the same targets and reaches more code: see CONTRIBUTING.md.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers: it reads files, starts processes and prints; the bans are for the library"
)]

mod mutate;
mod report;
mod run_target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use toolcrib_devtools::error::{self, Result};
use toolcrib_devtools::{product, workspace};
use toolcrib_fuzz::TARGETS;

use run_target::TargetRun;

/// Runs fuzz targets on mutations of fuzz/seeds
#[derive(Debug, Parser)]
#[command(name = "fuzz")]
struct Arguments {
    /// The target; all of them if none is given
    #[arg(value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.name)))]
    target: Option<String>,
    /// Run a fixed number of inputs, the same on every machine
    #[arg(long)]
    smoke: bool,
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 60, conflicts_with = "smoke")]
    seconds: u64,
    /// Seed of the mutations
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// When to stop testing a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Elapsed(Duration),
    Executions(u64),
}

/// For CI: a number rather than a time, so that every machine runs the same inputs.
const SMOKE_EXECUTIONS: u64 = 2_000;

/// Targets whose executions start a process or write files, with their number of executions in CI.
const SLOW: &[(&str, u64)] =
    &[("backtrack", 300), ("index", 100), ("journal", 600), ("pdf", 150), ("edit", 600)];

impl Arguments {
    fn limit(&self, target: &str) -> Limit {
        if !self.smoke {
            return Limit::Elapsed(Duration::from_secs(self.seconds));
        }
        let slow = SLOW.iter().find(|(name, _)| *name == target);
        Limit::Executions(slow.map_or(SMOKE_EXECUTIONS, |(_, executions)| *executions))
    }
}

fn main() -> ExitCode {
    error::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<()> {
    let program = product::build_debug_program("toolcrib-fuzz")?;
    let is_chosen = |name: &&str| arguments.target.as_deref().is_none_or(|chosen| chosen == *name);
    let mut found = 0;
    for target in TARGETS.iter().map(|target| target.name).filter(is_chosen) {
        let target_run = TargetRun::new(target, seeds_directory().join(target), &program)?;
        let tried = target_run.run(arguments.seed, arguments.limit(target))?;
        report::print(target, arguments.seed, &tried)?;
        found += usize::from(tried.finding.is_some());
    }
    if found == 0 { Ok(()) } else { Err(format!("findings in {found} targets: see above").into()) }
}

fn seeds_directory() -> PathBuf {
    workspace::root().join("fuzz/seeds")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn slow_targets_exist() {
        assert!(SLOW.iter().all(|(name, _)| TARGETS.iter().any(|target| target.name == *name)));
    }

    #[test]
    fn every_target_has_seeds() {
        for target in TARGETS {
            let seeds = fs::read_dir(seeds_directory().join(target.name));
            assert!(seeds.is_ok_and(|mut seeds| seeds.next().is_some()), "{}", target.name);
        }
    }
}
