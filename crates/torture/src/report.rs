//! The report: a table of counts, and each violation with the way to reproduce it.

use std::collections::BTreeMap;
use std::fmt;

use toolcrib_devtools::error::Result;

/// The number of violations of a row shown in full. A bug tends to show in every round.
const MAX_SHOWN: usize = 5;

/// The rows, in order.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<Row>,
}

/// The results of one test over many rounds.
pub(super) struct Row {
    part: &'static str,
    what: String,
    /// The number of rounds by outcome.
    pub(super) tally: Tally,
    violations: Vec<Violation>,
    /// Why it was skipped.
    skipped: Option<String>,
}

/// A violation, and how to reproduce it.
pub(super) struct Violation {
    pub(super) what: String,
    pub(super) again: String,
}

/// Counts by outcome.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(super) fn add(&mut self, name: &str) {
        self.add_many(name, 1);
    }

    pub(super) fn add_many(&mut self, name: &str, count: u64) {
        *self.0.entry(name.to_owned()).or_default() += count;
    }

    pub(super) fn merge(&mut self, other: &Tally) {
        other.0.iter().for_each(|(name, count)| self.add_many(name, *count));
    }

    fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.0.iter().map(|(name, count)| format!("{name} {count}")).collect();
        f.write_str(&counts.join(", "))
    }
}

impl Row {
    pub(super) fn new(part: &'static str, what: impl Into<String>) -> Row {
        let (tally, violations) = (Tally::default(), Vec::new());
        Row { part, what: what.into(), tally, violations, skipped: None }
    }

    pub(super) fn skipped(part: &'static str, what: &str, why: impl Into<String>) -> Row {
        Row { skipped: Some(why.into()), ..Row::new(part, what) }
    }

    pub(super) fn violate(&mut self, what: impl Into<String>, again: impl Into<String>) {
        self.violations.push(Violation { what: what.into(), again: again.into() });
    }

    fn outcome(&self) -> String {
        match (&self.skipped, self.violations.len()) {
            (Some(_), _) => "skipped".to_owned(),
            (None, 0) => "ok".to_owned(),
            (None, count) => format!("{count} VIOLATIONS"),
        }
    }
}

impl Report {
    pub(super) fn add(&mut self, row: Row) {
        println!("   {}: {}: {}: {}", row.part, row.what, row.outcome(), row.tally);
        self.rows.push(row);
    }

    /// Prints the report. Fails if there is a violation.
    pub(super) fn finish(&self, kind: &str) -> Result<()> {
        self.print_table();
        self.rows.iter().for_each(print_details);
        let skipped = self.rows.iter().filter(|row| row.skipped.is_some()).count();
        let failed = self.rows.iter().filter(|row| !row.violations.is_empty()).count();
        println!("\n{} passed, {failed} failed", self.rows.len() - failed - skipped);
        match failed {
            0 => Ok(()),
            _ => Err(format!("torture {kind}: violations, listed above").into()),
        }
    }

    fn print_table(&self) {
        println!("\n| part | what | runs | outcome | counts |");
        println!("|---|---|--:|---|---|");
        for row in &self.rows {
            let (part, what, total) = (row.part, &row.what, row.tally.total());
            println!("| {part} | {what} | {total} | {} | {} |", row.outcome(), row.tally);
        }
    }
}

fn print_details(row: &Row) {
    if let Some(why) = &row.skipped {
        println!("\nskipped {}, {}: {why}", row.part, row.what);
    }
    for violation in row.violations.iter().take(MAX_SHOWN) {
        println!("\nVIOLATION in {}, {}: {}", row.part, row.what, violation.what);
        println!("  to reproduce: {}", violation.again);
    }
    if row.violations.len() > MAX_SHOWN {
        println!("\n… and {} more in {}, {}", row.violations.len() - MAX_SHOWN, row.part, row.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_listed_by_name() {
        let mut tally = Tally::default();
        ["ok", "stale", "ok"].iter().for_each(|name| tally.add(name));
        let mut all = Tally::default();
        all.add("stale");
        all.merge(&tally);
        assert_eq!(all.to_string(), "ok 2, stale 2");
        assert_eq!(all.total(), 4);
    }

    #[test]
    fn a_violation_fails_the_report_and_a_skipped_row_does_not() {
        let mut report = Report::default();
        report.add(Row::skipped("full disk", "small tmpfs", "not root"));
        assert!(report.finish("fs").is_ok());
        let mut row = Row::new("kills", "Edit");
        row.violate("the file is torn", "cargo xtask torture fs kills");
        report.add(row);
        assert!(report.finish("fs").is_err());
    }
}
