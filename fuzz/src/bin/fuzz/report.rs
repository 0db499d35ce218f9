//! Prints the results of a target.

use std::fs;
use std::path::PathBuf;

use toolcrib_devtools::cache;
use toolcrib_devtools::error::Result;

use super::run_target::{Finding, TargetResult};

/// The number of outcomes listed, the most frequent first.
const MAX_LISTED: usize = 12;

/// Prints the number of executions and the outcomes. Writes the input of a finding to a file, so that it can be
/// reproduced.
pub(super) fn print(target: &str, seed: u64, result: &TargetResult) -> Result<()> {
    println!(
        "{target}, seed {seed}: {} executions in {:.1} s, the slowest {:.0} ms",
        result.executions,
        result.elapsed.as_secs_f64(),
        result.slowest.as_secs_f64() * 1e3
    );
    let mut outcomes: Vec<(&String, &u64)> = result.outcomes.iter().collect();
    outcomes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (outcome, count) in outcomes.iter().take(MAX_LISTED) {
        println!("  {count:>9}  {outcome}");
    }
    if outcomes.len() > MAX_LISTED {
        println!("  {:>9}  other outcomes", outcomes.len() - MAX_LISTED);
    }
    match &result.finding {
        Some(finding) => print_finding(target, seed, result.executions, finding),
        None => Ok(()),
    }
}

fn print_finding(target: &str, seed: u64, execution: u64, finding: &Finding) -> Result<()> {
    let directory: PathBuf = cache::directory()?.join("fuzz");
    fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{target}-{seed}-{execution}"));
    fs::write(&file, &finding.input)?;
    let file = file.display();
    println!("  FOUND, by an input of {} bytes: {}", finding.input.len(), finding.what);
    println!("  the input: {file}");
    println!("  to reproduce: cargo run -p toolcrib-fuzz -- {target} {file}");
    Ok(())
}
