//! One row of the screen.

/// Bytes as they came, until something in the row is changed; then cells, one a character. Most rows are
/// written once and left, and cost a copy.
#[derive(Debug, Default)]
pub(super) struct Row {
    plain: Vec<u8>,
    cells: Vec<Cell>,
    changed: bool,
    /// The first bytes of a character whose others are to come.
    unfinished: Vec<u8>,
}

/// A character, or a byte that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Char(char),
    Byte(u8),
}

const BLANK: Cell = Cell::Char(' ');

impl Row {
    /// How long it is: in bytes until it is changed, then in characters.
    pub(super) fn length(&self) -> usize {
        if self.changed { self.cells.len() } else { self.plain.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length() == 0 && self.unfinished.is_empty()
    }

    /// Puts text behind its end, while nothing in it was changed.
    pub(super) fn append(&mut self, text: &[u8]) -> bool {
        if !self.changed {
            self.plain.extend_from_slice(text);
        }
        !self.changed
    }

    /// Puts a byte of text at a column; answers the column after it, which is the same as long as the
    /// character is not whole.
    pub(super) fn put(&mut self, column: usize, byte: u8) -> usize {
        self.change();
        self.unfinished.push(byte);
        match std::str::from_utf8(&self.unfinished) {
            Ok(_) => self.settle(column),
            Err(error) if error.error_len().is_none() => column,
            Err(_) => {
                // The last byte may begin a character of its own.
                self.unfinished.pop();
                let column = self.settle(column);
                match byte {
                    _ if self.unfinished.is_empty() && is_lead(byte) => {
                        self.unfinished.push(byte);
                        column
                    }
                    0..0x80 => self.set(column, Cell::Char(byte.into())),
                    _ => self.set(column, Cell::Byte(byte)),
                }
            }
        }
    }

    /// Nothing more comes of a character that has begun: what there is stands for itself.
    pub(super) fn settle(&mut self, mut column: usize) -> usize {
        for cell in cells(&std::mem::take(&mut self.unfinished)) {
            column = self.set(column, cell);
        }
        column
    }

    /// How many characters it has.
    pub(super) fn columns(&mut self) -> usize {
        self.change();
        self.cells.len()
    }

    pub(super) fn cut(&mut self, column: usize) {
        self.change();
        self.cells.truncate(column);
    }

    pub(super) fn blank(&mut self, until: usize) {
        self.change();
        self.cells.iter_mut().take(until).for_each(|cell| *cell = BLANK);
    }

    pub(super) fn write_to(&self, seen: &mut Vec<u8>) {
        if !self.changed {
            seen.extend_from_slice(&self.plain);
            return;
        }
        // A bar that was wiped with blanks is seen as nothing.
        let end = self.cells.iter().rposition(|&cell| cell != BLANK).map_or(0, |last| last + 1);
        for cell in self.cells.iter().take(end) {
            match cell {
                Cell::Char(c) => seen.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                Cell::Byte(byte) => seen.push(*byte),
            }
        }
    }

    /// Makes it an empty row, with the room that it had.
    pub(super) fn reset(&mut self) {
        self.plain.clear();
        self.cells.clear();
        self.unfinished.clear();
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
        if column >= self.cells.len() {
            self.cells.resize(column + 1, BLANK);
        }
        if let Some(place) = self.cells.get_mut(column) {
            *place = cell;
        }
        column + 1
    }
}

fn cells(bytes: &[u8]) -> impl Iterator<Item = Cell> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().iter().map(|&byte| Cell::Byte(byte));
        chunk.valid().chars().map(Cell::Char).chain(invalid)
    })
}

/// Whether a byte may begin a character of several.
fn is_lead(byte: u8) -> bool {
    matches!(byte, 0xc2..=0xf4)
}
