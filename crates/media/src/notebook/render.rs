//! Renders the cells of a notebook within a size limit.

use super::output::{self, ShownOutput};
use super::{Cell, CellType, Notebook};

/// Limit of characters of one output. The source of a cell is more important than its output.
const OUTPUT_CHARS: usize = 4_000;

/// Limit of characters of an id or a type. Real ones have at most 64.
const NAME_CHARS: usize = 64;

/// More than the notes about omitted text take.
const FOOTER_CHARS: usize = 150;

/// A rendered part of a notebook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The cells, and a line that says how to get more if there are more. Control characters are not escaped.
    pub text: String,
    /// Number of rendered cells.
    pub shown: usize,
    /// Total number of cells.
    pub total: usize,
    /// Number of characters omitted from the rendered cells: from long outputs, or from a cell beyond the
    /// limit.
    pub clipped_chars: usize,
}

impl Notebook<'_> {
    /// Renders at most `limit` cells, from the cell with the number `first` on, in at most `max_chars`
    /// characters: whole cells, unless one alone is longer.
    pub fn render(&self, first: usize, limit: usize, max_chars: usize) -> Rendered {
        let first = first.max(1);
        let room = max_chars.saturating_sub(FOOTER_CHARS);
        let mut rendered =
            Rendered { text: String::new(), shown: 0, total: self.cells.len(), clipped_chars: 0 };
        let mut chars = 0;
        for cell in self.cells.iter().skip(first - 1).take(limit) {
            let (block, clipped) = show_cell(cell);
            let length = block.chars().count();
            if chars + length > room && rendered.shown > 0 {
                break;
            }
            let (block, more) = clip(block, room);
            chars += length;
            rendered.text += &block;
            rendered.shown += 1;
            rendered.clipped_chars += clipped + more;
        }
        let next = first + rendered.shown;
        if rendered.shown > 0 && next <= rendered.total {
            let (last, total) = (next - 1, rendered.total);
            rendered.text +=
                &format!("[cells {first}-{last} of {total}; for more, offset: {next}]\n");
        }
        rendered
    }
}

/// A cell with its outputs, and the number of characters omitted from them.
fn show_cell(cell: &Cell<'_>) -> (String, usize) {
    let mut text = format!("[cell {} {}", cell.number, name(&cell.cell_type));
    if let Some(id) = cell.id() {
        text += &format!(" id={}", name(id));
    }
    if let Some(count) = cell.execution_count.filter(|_| cell.cell_type == CellType::Code.name()) {
        text += &format!(" In[{count}]");
    }
    text += "]\n";
    push_lines(&mut text, &cell.source);
    let mut clipped = 0;
    for raw in &cell.outputs {
        let ShownOutput { label, text: output } = output::shown(raw);
        text += match label {
            "" => "[output",
            _ => "[output ",
        };
        text += label;
        text += "]\n";
        let (output, more) = clip(output, OUTPUT_CHARS);
        push_lines(&mut text, &output);
        clipped += more;
    }
    (text, clipped)
}

fn push_lines(text: &mut String, lines: &str) {
    text.push_str(lines);
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A name that cannot be confused with other parts of the line.
fn name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.len() <= NAME_CHARS && !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    let short: String = name.chars().take(NAME_CHARS).collect();
    format!("{short:?}")
}

/// The first lines of a text that fit, and a line that counts the omitted characters.
fn clip(text: String, room: usize) -> (String, usize) {
    let Some((limit, _)) = text.char_indices().nth(room) else { return (text, 0) };
    let cut = text[..limit].rfind('\n').map_or(limit, |newline| newline + 1);
    let left_out = text[cut..].chars().count();
    let mut kept = text;
    kept.truncate(cut);
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    (format!("{kept}[{left_out} characters omitted]\n"), left_out)
}
