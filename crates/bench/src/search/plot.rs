//! The table as a chart of ratios to the peer.

use super::Row;

const ROW_HEIGHT: usize = 22;
const LABEL_WIDTH: usize = 330;
const PLOT_WIDTH: usize = 420;
/// The logarithmic scale goes from a thousandth of the peer's time to four times it.
const MIN_RATIO: f64 = 0.001;
const MAX_RATIO: f64 = 4.0;

/// Draws all rows of all tables.
pub(super) fn draw(tables: &[(&'static str, Vec<Row>)]) -> String {
    let rows: usize = tables.iter().map(|(_, rows)| rows.len() + 2).sum();
    let (width, height) = (LABEL_WIDTH + PLOT_WIDTH + 90, (rows + 1) * ROW_HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut y = ROW_HEIGHT;
    for (name, rows) in tables {
        svg += &format!(
            "<text x=\"8\" y=\"{y}\" font-weight=\"bold\">{name}: time of ours / time of theirs (left is faster; the line is equal)</text>\n"
        );
        y += ROW_HEIGHT / 2;
        let (top, equal) = (y, LABEL_WIDTH as f64 + x_position(1.0));
        for row in rows {
            svg += &bar(row, y);
            y += ROW_HEIGHT;
        }
        svg += &format!(
            "<line x1=\"{equal:.0}\" y1=\"{top}\" x2=\"{equal:.0}\" y2=\"{y}\" stroke=\"#333\"/>\n"
        );
        y += ROW_HEIGHT * 3 / 2;
    }
    svg + "</svg>\n"
}

fn bar(row: &Row, y: usize) -> String {
    let Some(ratio) = row.ratio() else { return String::new() };
    let (length, text_y) = (x_position(ratio), y + 15);
    let colour = if ratio <= 1.0 { "#4c9a6a" } else { "#c0564a" };
    let what = row.what.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<text x=\"8\" y=\"{text_y}\">{what}</text>\
         <rect x=\"{LABEL_WIDTH}\" y=\"{}\" width=\"{length:.0}\" height=\"14\" fill=\"{colour}\"/>\
         <text x=\"{:.0}\" y=\"{text_y}\">{ratio:.3}×</text>\n",
        y + 4,
        LABEL_WIDTH as f64 + length + 6.0,
    )
}

fn x_position(ratio: f64) -> f64 {
    let part = (ratio.clamp(MIN_RATIO, MAX_RATIO) / MIN_RATIO).ln() / (MAX_RATIO / MIN_RATIO).ln();
    (part * PLOT_WIDTH as f64).max(2.0)
}
