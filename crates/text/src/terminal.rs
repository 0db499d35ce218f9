//! Renders output for a terminal as a person would finally see it.
//!
//! A progress bar is one line drawn a thousand times, and reading the raw bytes would cost all of them. Here
//! they pass through a small terminal emulator: carriage returns and backspaces overwrite, cursor movement
//! and erasure are applied, and colours, titles and links are reduced to their text. Other bytes are
//! unchanged, for [`crate::visible()`] to show.
//!
//! Text before a carriage return becomes a line of its own if it has words that the text after it lacks. Such a
//! line is no progress display, and its text would be lost.
//!
//! It is approximate on purpose: a character takes one column, rows do not wrap, and clearing the screen
//! starts a new one without losing text. Memory is constant and time linear for any bytes, and the result
//! does not depend on how they are split into chunks.

mod escape;
mod row;
mod screen;
#[cfg(test)]
mod tests;

use self::escape::{Action, Escape, Step};
use self::screen::Screen;

/// Renders terminal output in chunks.
#[derive(Debug, Default)]
pub struct Terminal {
    screen: Screen,
    /// The incomplete escape sequence.
    escape: Option<Escape>,
}

impl Terminal {
    /// Processes the next chunk. Appends lines that can no longer change to `seen`.
    pub fn feed(&mut self, mut bytes: &[u8], seen: &mut Vec<u8>) {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.escape.take() {
                Some(escape) => match escape.step(byte) {
                    Step::More(escape) => self.escape = Some(escape),
                    Step::Done(action) => self.act(action, seen),
                    // The byte ends the sequence and is processed by itself.
                    Step::Invalid => continue,
                },
                None if is_text(byte) => {
                    let end = bytes.iter().position(|&byte| !is_text(byte)).unwrap_or(bytes.len());
                    let (text, rest) = bytes.split_at(end);
                    self.screen.print(text, seen);
                    bytes = rest;
                    continue;
                }
                None => self.control(byte, seen),
            }
            bytes = rest;
        }
    }

    /// Appends the rest of the screen at the end of the output.
    pub fn finish(self, seen: &mut Vec<u8>) {
        self.screen.finish(seen);
    }

    fn control(&mut self, byte: u8, seen: &mut Vec<u8>) {
        match byte {
            b'\n' => self.screen.line_feed(seen),
            b'\r' => self.screen.carriage_return(seen),
            BACKSPACE => self.screen.left(1),
            ESCAPE => self.escape = Some(Escape::default()),
            // The bell.
            _ => {}
        }
    }

    fn act(&mut self, action: Action, seen: &mut Vec<u8>) {
        let screen = &mut self.screen;
        match action {
            Action::Nothing => {}
            Action::Up(rows) => screen.up(rows),
            Action::Down(rows) => screen.down(rows),
            Action::Left(columns) => screen.left(columns),
            Action::Right(columns) => screen.right(columns),
            Action::Column(column) => screen.go_to_column(column),
            Action::Position(row, column) => {
                screen.go_to_row(row);
                screen.go_to_column(column);
            }
            Action::EraseLineRight => screen.erase_right(),
            Action::EraseLineLeft => screen.erase_left(),
            Action::EraseLine => screen.erase_row(),
            Action::EraseBelow => screen.erase_below(),
            Action::EraseAbove => screen.erase_above(),
            Action::Clear => screen.clear(seen),
            Action::NextLine => screen.line_feed(seen),
            Action::Save => screen.save(),
            Action::Restore => screen.restore(),
        }
    }
}

/// Renders a whole output.
pub fn as_seen(bytes: &[u8]) -> Vec<u8> {
    let mut seen = Vec::with_capacity(bytes.len());
    let mut terminal = Terminal::default();
    terminal.feed(bytes, &mut seen);
    terminal.finish(&mut seen);
    seen
}

const BELL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;
const ESCAPE: u8 = 0x1b;

/// Whether a byte is printed. Control characters without effect are, since dropping them would join their
/// neighbours.
fn is_text(byte: u8) -> bool {
    !matches!(byte, b'\n' | b'\r' | BACKSPACE | BELL | ESCAPE)
}
