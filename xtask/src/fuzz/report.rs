//! What is said about a target that was tried.

use std::fs;
use std::path::PathBuf;

use super::trial::{Finding, Tried};
use crate::error::Result;
use crate::workspace;

/// Outcomes that are listed, the most frequent first.
const LISTED: usize = 12;

/// Prints how much was tried and what came of it. A finding's input is kept in a file, to be tried again.
pub(super) fn print(target: &str, seed: u64, tried: &Tried) -> Result<()> {
    println!(
        "{target}, seed {seed}: {} executions in {:.1} s, the slowest {:.0} ms",
        tried.executions,
        tried.elapsed.as_secs_f64(),
        tried.slowest.as_secs_f64() * 1e3
    );
    let mut outcomes: Vec<(&String, &u64)> = tried.outcomes.iter().collect();
    outcomes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (outcome, count) in outcomes.iter().take(LISTED) {
        println!("  {count:>9}  {outcome}");
    }
    if outcomes.len() > LISTED {
        println!("  {:>9}  other outcomes", outcomes.len() - LISTED);
    }
    match &tried.finding {
        Some(finding) => print_finding(target, seed, tried.executions, finding),
        None => Ok(()),
    }
}

fn print_finding(target: &str, seed: u64, execution: u64, finding: &Finding) -> Result<()> {
    let directory: PathBuf = workspace::cache_directory()?.join("fuzz");
    fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{target}-{seed}-{execution}"));
    fs::write(&file, &finding.input)?;
    let file = file.display();
    println!("  FOUND, by an input of {} bytes: {}", finding.input.len(), finding.what);
    println!("  the input: {file}");
    println!("  to see it again: cargo run -p toolcrib-fuzz -- {target} {file}");
    Ok(())
}
