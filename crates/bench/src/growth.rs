//! `bench growth`: how cost grows with the number of files, the length of the journal and the length of output. Draws
//! a chart of each table.

mod chart;
mod journal;
mod output;
mod tree;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::workspace;

use self::chart::Chart;
use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};

/// The charts, beside the page that shows them.
const CHARTS: &str = "docs/growth.svg";

/// Measurements by size. All series have the same unit.
struct Growth {
    title: &'static str,
    /// What the size counts.
    of: &'static str,
    unit: &'static str,
    series: Vec<&'static str>,
    points: Vec<Point>,
}

/// The figures at one size, in the order of the series.
struct Point {
    size: u64,
    figures: Vec<Option<f64>>,
}

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let mut charts = Vec::new();
    for measure in [tree::measure, journal::measure, output::measure] {
        let growth = measure(&binary, rounds)?;
        report.add(&growth.table());
        charts.push(growth);
    }
    if !rounds.is_smoke {
        let path = workspace::root().join(CHARTS);
        std::fs::write(&path, Chart::all(&charts))?;
        report.note(&format!("Wrote {}", path.display()));
    }
    Ok(())
}

impl Growth {
    fn table(&self) -> Table {
        let mut table = Table::new(format!("{}, {}", self.of, self.unit), &self.series);
        for Point { size, figures } in &self.points {
            table.row(size.to_string(), figures.iter().map(|figure| Cell::exact(*figure)));
        }
        table
    }
}

/// Powers of ten from `first` to `last`; only the first in a smoke run.
fn sizes(first: u64, last: u64, rounds: Rounds) -> impl Iterator<Item = u64> {
    let last = if rounds.is_smoke { first } else { last };
    std::iter::successors(Some(first), |size| Some(size * 10)).take_while(move |size| *size <= last)
}
