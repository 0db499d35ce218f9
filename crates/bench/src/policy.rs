//! `bench policy`: the cost of a decision alone.

use std::process::Command;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::Rounds;

pub(super) fn run(rounds: Rounds) -> Result<()> {
    let example = rounds.build_example("toolcrib-policy", "measure_decide")?;
    let lines = process::capture(Command::new(example).arg(rounds.measured.to_string()))?;
    println!("\n| decided on | p50 µs | p99 µs |\n| --- | ---: | ---: |");
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line)?;
        // All scripts are ordinary: a decision other than allow means that one was not parsed.
        if row["decision"] != "allow" {
            return Err(format!("it was not allowed: {line}").into());
        }
        println!(
            "| {} | {} | {} |",
            row["what"].as_str().unwrap_or_default(),
            row["p50"],
            row["p99"]
        );
    }
    Ok(())
}
