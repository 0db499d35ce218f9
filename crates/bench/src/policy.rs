//! `bench policy`: the cost of a decision alone.

use std::process::Command;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let example = rounds.build_example("toolcrib-policy", "measure_decide")?;
    let lines = process::capture(Command::new(example).arg(rounds.measured.to_string()))?;
    let mut table = Table::new("decided on", &["p50 µs", "p99 µs"]);
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line)?;
        // All scripts are ordinary: a decision other than allow means that one was not parsed.
        if row["decision"] != "allow" {
            return Err(format!("it was not allowed: {line}").into());
        }
        let cells = ["p50", "p99"].map(|key| Cell::exact(row[key].as_f64()));
        table.row(row["what"].as_str().unwrap_or_default(), cells);
    }
    report.add(&table);
    Ok(())
}
