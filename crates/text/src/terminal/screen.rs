//! The rows that can still change, and the cursor.

use std::collections::VecDeque;

use super::row::Row;

/// Number of rows that the cursor can return to. More than the progress displays of programs use.
const MAX_ROWS: usize = 64;

/// Limit of the length of a row. The beginning of a longer line is written out, and the line continues. It
/// also limits the cost of a short sequence that erases a row.
const MAX_LENGTH: usize = 8 << 10;

/// How far the cursor moves beyond the text: the width of classic terminals. Without a limit, each short
/// sequence could create a screen of spaces.
const WIDTH: usize = 132;

#[derive(Debug)]
pub(super) struct Screen {
    rows: VecDeque<Row>,
    /// The row of the cursor.
    row: usize,
    /// The column of the cursor. `None` at the end of the row.
    column: Option<usize>,
    /// Number of rows that were scrolled out, so that a saved row is identified by its number.
    scrolled: usize,
    saved: Option<(usize, Option<usize>)>,
    /// Whether the cursor was moved to other rows, so that rows must keep their positions.
    has_moved: bool,
}

impl Default for Screen {
    fn default() -> Self {
        let rows = VecDeque::from([Row::default()]);
        Screen { rows, row: 0, column: None, scrolled: 0, saved: None, has_moved: false }
    }
}

impl Screen {
    pub(super) fn print(&mut self, mut text: &[u8], seen: &mut Vec<u8>) {
        while !text.is_empty() {
            let room = MAX_LENGTH.saturating_sub(self.current().length());
            if room == 0 {
                self.flush(seen);
                continue;
            }
            let (now, later) = text.split_at(room.min(text.len()));
            self.print_here(now);
            text = later;
        }
    }

    /// Returns to the first column, where the next text overwrites the current one.
    pub(super) fn carriage_return(&mut self, seen: &mut Vec<u8>) {
        self.flush_partial();
        self.keep_lost_text(seen);
        self.go_to_column(0);
        if !self.has_moved {
            self.current().begin_redraw();
        }
    }

    pub(super) fn line_feed(&mut self, seen: &mut Vec<u8>) {
        self.flush_partial();
        self.keep_lost_text(seen);
        self.row += 1;
        self.column = Some(0);
        if self.row < self.rows.len() {
            return;
        }
        self.column = None;
        let fresh = if self.rows.len() >= MAX_ROWS { self.scroll(seen) } else { Row::default() };
        self.rows.push_back(fresh);
        self.row = self.rows.len() - 1;
    }

    pub(super) fn up(&mut self, rows: usize) {
        self.go_to_row(self.row.saturating_sub(rows));
    }

    pub(super) fn down(&mut self, rows: usize) {
        self.go_to_row(self.row + rows);
    }

    pub(super) fn go_to_row(&mut self, row: usize) {
        self.cursor_column();
        self.has_moved = true;
        self.row = row.min(self.rows.len() - 1);
        self.bound_column();
    }

    pub(super) fn go_to_column(&mut self, column: usize) {
        self.flush_partial();
        let empty = self.current().is_empty();
        self.column = (column > 0 || !empty).then_some(column);
        if column > 0 {
            self.bound_column();
        }
    }

    pub(super) fn left(&mut self, columns: usize) {
        let column = self.cursor_column();
        self.column = Some(column.saturating_sub(columns));
    }

    pub(super) fn right(&mut self, columns: usize) {
        let column = self.cursor_column();
        self.column = Some(column + columns);
        self.bound_column();
    }

    pub(super) fn erase_right(&mut self) {
        let column = self.cursor_column();
        self.current().cut(column);
    }

    pub(super) fn erase_left(&mut self) {
        let column = self.cursor_column();
        self.current().blank(column + 1);
    }

    pub(super) fn erase_row(&mut self) {
        self.cursor_column();
        self.current().cut(0);
    }

    pub(super) fn erase_below(&mut self) {
        self.erase_right();
        self.rows.truncate(self.row + 1);
    }

    pub(super) fn erase_above(&mut self) {
        self.erase_left();
        self.rows.iter_mut().take(self.row).for_each(|row| row.cut(0));
    }

    /// Starts a new screen. The old content is written out, since it is output like any other.
    pub(super) fn clear(&mut self, seen: &mut Vec<u8>) {
        self.flush_partial();
        self.keep_lost_text(seen);
        let blank = self.rows.iter().all(Row::is_empty);
        if !blank {
            self.write_rows(seen);
            if self.rows.back().is_some_and(|row| !row.is_empty()) {
                seen.push(b'\n');
            }
        }
        self.reset();
    }

    pub(super) fn save(&mut self) {
        let column = self.cursor_column();
        self.has_moved = true;
        self.saved = Some((self.scrolled + self.row, Some(column)));
    }

    pub(super) fn restore(&mut self) {
        self.flush_partial();
        if let Some((row, column)) = self.saved {
            self.row = row.saturating_sub(self.scrolled).min(self.rows.len() - 1);
            self.column = column;
            self.bound_column();
        }
    }

    pub(super) fn finish(mut self, seen: &mut Vec<u8>) {
        self.flush_partial();
        self.keep_lost_text(seen);
        self.write_rows(seen);
    }

    fn print_here(&mut self, text: &[u8]) {
        if self.column.is_none() && self.current().append(text) {
            return;
        }
        let mut column = match self.column {
            Some(column) => column,
            None => self.current().columns(),
        };
        let row = self.current();
        for &byte in text {
            column = row.put(column, byte);
        }
        self.column = Some(column);
    }

    fn current(&mut self) -> &mut Row {
        if self.row >= self.rows.len() {
            self.rows.resize_with(self.row + 1, Row::default);
        }
        &mut self.rows[self.row]
    }

    /// Completes an incomplete character before the cursor moves.
    fn flush_partial(&mut self) {
        if let Some(column) = self.column {
            self.column = Some(self.current().flush_partial(column));
        }
    }

    /// The column of the cursor as a number.
    fn cursor_column(&mut self) -> usize {
        self.flush_partial();
        let columns = self.current().columns();
        *self.column.get_or_insert(columns)
    }

    fn bound_column(&mut self) {
        let columns = self.current().columns();
        self.column = self.column.map(|column| column.min(columns.max(WIDTH)));
    }

    /// Writes out the top row and returns it empty.
    fn scroll(&mut self, seen: &mut Vec<u8>) -> Row {
        self.scrolled += 1;
        let mut top = self.rows.pop_front().unwrap_or_default();
        top.write_to(seen);
        seen.push(b'\n');
        top.reset();
        top
    }

    /// Makes overwritten text that would be lost a row of its own.
    fn keep_lost_text(&mut self, seen: &mut Vec<u8>) {
        if self.has_moved {
            return;
        }
        if let Some(lost) = self.current().take_lost_text() {
            if self.rows.len() >= MAX_ROWS {
                self.scroll(seen);
                self.row = self.row.saturating_sub(1);
            }
            self.rows.insert(self.row, lost);
            self.row += 1;
        }
    }

    /// Writes out everything in the middle of a line.
    fn flush(&mut self, seen: &mut Vec<u8>) {
        self.flush_partial();
        self.keep_lost_text(seen);
        self.write_rows(seen);
        self.reset();
    }

    fn write_rows(&mut self, seen: &mut Vec<u8>) {
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                seen.push(b'\n');
            }
            row.write_to(seen);
        }
    }

    fn reset(&mut self) {
        self.scrolled += self.rows.len();
        self.rows.truncate(1);
        self.rows.iter_mut().for_each(Row::reset);
        (self.row, self.column, self.has_moved) = (0, None, false);
    }
}
