//! The results of one benchmark. They are printed at once. At the end they are written as JSON and compared with the
//! last run, so that a regression is seen.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolcrib_devtools::cache;
use toolcrib_devtools::error::Result;

use super::table::{Cell, Table};

/// Smaller changes are noise on most machines.
const MIN_CHANGE: f64 = 0.1;

/// The tables of one benchmark.
#[derive(Default)]
pub(super) struct Report {
    tables: Vec<Value>,
    notes: Vec<String>,
}

impl Report {
    /// Prints a table and keeps it.
    pub(super) fn add(&mut self, table: &Table) {
        print!("\n{table}");
        self.tables.push(table.to_json());
    }

    /// Prints a sentence about the last table, and keeps it.
    pub(super) fn note(&mut self, sentence: &str) {
        println!("\n{sentence}");
        self.notes.push(sentence.to_owned());
    }

    /// Writes the tables, and prints the figures that differ from the last run.
    pub(super) fn end(self, bench: &str) -> Result<()> {
        let path = path_of(bench)?;
        let report = json!({
            "bench": bench,
            "seconds_since_1970": SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
            "processors": std::thread::available_parallelism()?.get(),
            "tables": self.tables,
            "notes": self.notes,
        });
        match read(&path) {
            Some(last) => print_comparison(&last, &report),
            None => println!("\nNo earlier run to compare with."),
        }
        std::fs::write(&path, serde_json::to_vec_pretty(&report)?)?;
        println!("\nWrote {}", path.display());
        Ok(())
    }
}

fn path_of(bench: &str) -> Result<PathBuf> {
    let directory = cache::directory()?.join("bench-results");
    std::fs::create_dir_all(&directory)?;
    Ok(directory.join(format!("{bench}.json")))
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn print_comparison(last: &Value, now: &Value) {
    let (changes, compared) = compare(last, now);
    let percent = MIN_CHANGE * 100.0;
    println!(
        "\n{} of {compared} figures differ from the last run by more than {percent} %.",
        changes.len()
    );
    if changes.is_empty() {
        return;
    }
    let mut table = Table::new("changed", &["last", "now", "now to last"]);
    for Change { name, last, now } in changes {
        let cells = [Cell::exact(last), Cell::exact(now), Cell::ratio(now, last)];
        table.row(name, cells);
    }
    print!("\n{table}");
}

/// A figure that differs from the last run.
#[derive(Debug, PartialEq)]
struct Change {
    name: String,
    last: Option<f64>,
    now: Option<f64>,
}

/// The figures that changed much, and the number of figures that both runs have.
fn compare(last: &Value, now: &Value) -> (Vec<Change>, usize) {
    let before = figures(last);
    let mut compared = 0;
    let mut changes = Vec::new();
    for (name, now) in figures(now) {
        let Some((_, last)) = before.iter().find(|(before, _)| *before == name) else { continue };
        compared += 1;
        let is_same = match (last, now) {
            (Some(last), Some(now)) => (now - last).abs() <= MIN_CHANGE * last.abs(),
            (last, now) => last.is_none() && now.is_none(),
        };
        if !is_same {
            changes.push(Change { name, last: *last, now });
        }
    }
    (changes, compared)
}

/// All figures of a report, named by table, row and column.
fn figures(report: &Value) -> Vec<(String, Option<f64>)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for table in list(&report["tables"]) {
        for row in list(&table["rows"]) {
            for (column, figure) in row["figures"].as_object().into_iter().flatten() {
                let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let name = format!("{}: {}, {column}", part(&table["title"]), part(&row["name"]));
                all.push((name, figure.as_f64()));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rows: &[(&str, Option<f64>)]) -> Value {
        let mut table = Table::new("calls", &["ms"]);
        for (name, value) in rows {
            table.row(*name, [Cell::exact(*value)]);
        }
        json!({"tables": [table.to_json()]})
    }

    #[test]
    fn finds_figures_that_changed_much() {
        let last = report(&[("a", Some(1.0)), ("b", Some(1.0)), ("c", None), ("gone", Some(1.0))]);
        let now = report(&[("a", Some(1.05)), ("b", Some(1.2)), ("c", Some(1.0)), ("new", None)]);
        let (changes, compared) = compare(&last, &now);
        assert_eq!(compared, 3);
        let change = |name: &str, last, now| Change { name: name.to_owned(), last, now };
        assert_eq!(
            changes,
            [change("calls: b, ms", Some(1.0), Some(1.2)), change("calls: c, ms", None, Some(1.0))]
        );
    }

    #[test]
    fn compares_nothing_with_a_damaged_report() {
        assert_eq!(compare(&json!("damaged"), &report(&[("a", Some(1.0))])), (Vec::new(), 0));
    }
}
