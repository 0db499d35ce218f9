//! A table of results: printed as Markdown, and kept as JSON.

use std::fmt;

use serde_json::{Value, json};

use super::times::Times;

/// A table. The title is the heading of the first column, which names the rows.
pub(super) struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    cells: Vec<Cell>,
}

/// A cell of a table.
pub(super) enum Cell {
    /// A figure that is compared with the last run, and its number of decimals.
    Figure {
        value: Option<f64>,
        decimals: usize,
        unit: &'static str,
    },
    /// The number of measurements. It says nothing about speed.
    Count(usize),
    Text(&'static str),
}

impl Cell {
    /// A time or size with two decimals.
    pub(super) fn exact(value: Option<f64>) -> Cell {
        Cell::Figure { value, decimals: 2, unit: "" }
    }

    /// A figure whose decimals do not matter.
    pub(super) fn whole(value: Option<f64>) -> Cell {
        Cell::Figure { value, decimals: 0, unit: "" }
    }

    /// The ratio to a base.
    pub(super) fn ratio(value: Option<f64>, base: Option<f64>) -> Cell {
        let value = value.zip(base).map(|(value, base)| value / base);
        Cell::Figure { value, decimals: 2, unit: "×" }
    }

    /// The difference from a base.
    pub(super) fn difference(value: Option<f64>, base: Option<f64>) -> Cell {
        Cell::exact(value.zip(base).map(|(value, base)| value - base))
    }

    /// The usual cells of a contestant: the number of measurements, p50 and p90 in ms, and p50 as a ratio to a base.
    pub(super) fn of_times(times: &Times, base: &Times) -> [Cell; 4] {
        let p50 = times.percentile_ms(50);
        [
            Cell::Count(times.count()),
            Cell::exact(p50),
            Cell::exact(times.percentile_ms(90)),
            Cell::ratio(p50, base.percentile_ms(50)),
        ]
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Figure { value: Some(value), decimals, unit } => {
                write!(f, "{value:.decimals$}{unit}")
            }
            Cell::Figure { value: None, .. } => f.write_str("–"),
            Cell::Count(count) => write!(f, "{count}"),
            Cell::Text(text) => f.write_str(text),
        }
    }
}

impl Table {
    pub(super) fn new(title: impl Into<String>, columns: &[&'static str]) -> Table {
        Table { title: title.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row { name: name.into(), cells: cells.into_iter().collect() });
    }

    /// The rows with their figures by column. Missing figures are null.
    pub(super) fn to_json(&self) -> Value {
        let row = |row: &Row| {
            let figures: serde_json::Map<String, Value> = self
                .columns
                .iter()
                .zip(&row.cells)
                .filter_map(|(column, cell)| match cell {
                    Cell::Figure { value, .. } => Some(((*column).to_owned(), json!(value))),
                    Cell::Count(_) | Cell::Text(_) => None,
                })
                .collect();
            json!({"name": row.name, "figures": figures})
        };
        json!({"title": self.title, "rows": self.rows.iter().map(row).collect::<Vec<_>>()})
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} | {} |", self.title, self.columns.join(" | "))?;
        writeln!(f, "| --- |{}", " ---: |".repeat(self.columns.len()))?;
        for row in &self.rows {
            let cells: Vec<String> = row.cells.iter().map(Cell::to_string).collect();
            writeln!(f, "| {} | {} |", row.name, cells.join(" | "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_markdown_with_dashes_for_missing_figures() {
        let mut table = Table::new("what", &["rounds", "ms", "to cat"]);
        table.row(
            "Read",
            [Cell::Count(3), Cell::exact(Some(1.5)), Cell::ratio(Some(3.0), Some(2.0))],
        );
        table.row("cat", [Cell::Count(3), Cell::exact(None), Cell::ratio(None, Some(2.0))]);
        assert_eq!(
            table.to_string(),
            "| what | rounds | ms | to cat |\n| --- | ---: | ---: | ---: |\n\
             | Read | 3 | 1.50 | 1.50× |\n| cat | 3 | – | – |\n"
        );
        let rows = &table.to_json()["rows"];
        assert_eq!(rows[0]["figures"], json!({"ms": 1.5, "to cat": 1.5}));
        assert_eq!(rows[1]["figures"], json!({"ms": null, "to cat": null}));
    }
}
