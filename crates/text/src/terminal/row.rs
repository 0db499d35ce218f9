//! One row of the screen.

use std::collections::HashSet;

/// Raw bytes until something in the row is changed, then one cell for each character. Most rows are written
/// once, and cost one copy.
#[derive(Debug, Default)]
pub(super) struct Row {
    plain: Vec<u8>,
    cells: Vec<Cell>,
    changed: bool,
    /// The first bytes of an incomplete character.
    partial_char: Vec<u8>,
    /// The text written since a carriage return, if it is contiguous.
    redraw: Option<Redraw>,
}

/// Text written from the first column on, over an earlier text.
#[derive(Debug, Default)]
struct Redraw {
    /// The characters that were overwritten.
    overwritten: Vec<Cell>,
    /// Number of characters written.
    length: usize,
}

/// A character, or an invalid byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Char(char),
    Byte(u8),
}

const BLANK: Cell = Cell::Char(' ');

impl Row {
    /// Its length: in bytes until it is changed, then in characters.
    pub(super) fn length(&self) -> usize {
        if self.changed { self.cells.len() } else { self.plain.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length() == 0 && self.partial_char.is_empty()
    }

    /// Appends text. Returns false if the row was changed, and then does nothing.
    pub(super) fn append(&mut self, text: &[u8]) -> bool {
        if !self.changed {
            self.plain.extend_from_slice(text);
        }
        !self.changed
    }

    /// Puts a byte at a column. Returns the next column, which is the same as long as the character is
    /// incomplete.
    pub(super) fn put(&mut self, column: usize, byte: u8) -> usize {
        self.change();
        self.partial_char.push(byte);
        match std::str::from_utf8(&self.partial_char) {
            Ok(_) => self.flush_partial(column),
            Err(error) if error.error_len().is_none() => column,
            Err(_) => {
                // The last byte may begin another character.
                self.partial_char.pop();
                let column = self.flush_partial(column);
                match byte {
                    _ if self.partial_char.is_empty() && is_lead(byte) => {
                        self.partial_char.push(byte);
                        column
                    }
                    0..0x80 => self.set(column, Cell::Char(byte.into())),
                    _ => self.set(column, Cell::Byte(byte)),
                }
            }
        }
    }

    /// Writes an incomplete character as invalid bytes.
    pub(super) fn flush_partial(&mut self, mut column: usize) -> usize {
        for cell in cells(&std::mem::take(&mut self.partial_char)) {
            column = self.set(column, cell);
        }
        column
    }

    /// The number of characters.
    pub(super) fn columns(&mut self) -> usize {
        self.change();
        self.cells.len()
    }

    /// Notes that the next text is written from the first column on.
    pub(super) fn begin_redraw(&mut self) {
        self.redraw = Some(Redraw::default());
    }

    /// Removes and returns the earlier text, if words of it were overwritten that the new text lacks. Progress
    /// displays repeat their words, or erase the old text.
    pub(super) fn take_lost_text(&mut self) -> Option<Row> {
        let Redraw { mut overwritten, length } = self.redraw.take()?;
        let new = self.cells.get(..length)?;
        let is_erased = new.iter().all(|&cell| cell == BLANK);
        if overwritten.is_empty() || is_erased || words(&overwritten).is_subset(&words(new)) {
            return None;
        }
        let behind = self.cells.split_off(length);
        // The earlier text continues behind the new one, unless the new one is longer.
        if overwritten.len() == length {
            overwritten.extend(behind);
        }
        Some(Row { cells: overwritten, changed: true, ..Row::default() })
    }

    pub(super) fn cut(&mut self, column: usize) {
        self.change();
        self.redraw = None;
        self.cells.truncate(column);
    }

    pub(super) fn blank(&mut self, until: usize) {
        self.change();
        self.redraw = None;
        self.cells.iter_mut().take(until).for_each(|cell| *cell = BLANK);
    }

    pub(super) fn write_to(&self, seen: &mut Vec<u8>) {
        if !self.changed {
            seen.extend_from_slice(&self.plain);
            return;
        }
        // A bar that was overwritten with spaces is invisible.
        let end = self.cells.iter().rposition(|&cell| cell != BLANK).map_or(0, |last| last + 1);
        for cell in self.cells.iter().take(end) {
            match cell {
                Cell::Char(c) => seen.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                Cell::Byte(byte) => seen.push(*byte),
            }
        }
    }

    /// Empties the row and keeps its allocation.
    pub(super) fn reset(&mut self) {
        self.plain.clear();
        self.cells.clear();
        self.partial_char.clear();
        self.redraw = None;
        self.changed = false;
    }

    fn change(&mut self) {
        if !self.changed {
            self.cells.extend(cells(&self.plain));
            self.plain.clear();
            self.changed = true;
        }
    }

    fn set(&mut self, column: usize, cell: Cell) -> usize {
        if let Some(redraw) = &mut self.redraw {
            if redraw.length == column {
                redraw.overwritten.extend(self.cells.get(column));
                redraw.length += 1;
            } else {
                self.redraw = None;
            }
        }
        if column >= self.cells.len() {
            self.cells.resize(column + 1, BLANK);
        }
        if let Some(place) = self.cells.get_mut(column) {
            *place = cell;
        }
        column + 1
    }
}

/// The words in a text: runs of letters.
fn words(cells: &[Cell]) -> HashSet<Vec<char>> {
    let letter = |cell: &Cell| match cell {
        Cell::Char(c) => Some(*c).filter(|c| c.is_alphabetic()),
        Cell::Byte(_) => None,
    };
    let runs = cells.split(|cell| letter(cell).is_none());
    runs.filter(|run| !run.is_empty()).map(|run| run.iter().filter_map(letter).collect()).collect()
}

fn cells(bytes: &[u8]) -> impl Iterator<Item = Cell> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().iter().map(|&byte| Cell::Byte(byte));
        chunk.valid().chars().map(Cell::Char).chain(invalid)
    })
}

/// Whether a byte may begin a multi-byte character.
fn is_lead(byte: u8) -> bool {
    matches!(byte, 0xc2..=0xf4)
}
