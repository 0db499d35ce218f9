//! What a program wrote for a terminal, as a person would see it there at the end.
//!
//! A progress bar is one line drawn a thousand times; whoever reads the bytes as they came pays for all
//! of them. Here they go through a small terminal: carriage returns and backspaces overwrite, the cursor
//! moves and erases, colours, titles and links leave their text behind and nothing else. What does not
//! act stays as it is, for [`crate::visible()`] to show.
//!
//! Approximate on purpose: a character is a column, rows do not wrap, clearing the screen begins a new one
//! and loses nothing. Memory is flat and time linear for any bytes, and it does not matter how they are cut
//! into chunks.

mod escape;
mod row;
mod screen;
#[cfg(test)]
mod tests;

use self::escape::{Action, Escape, Step};
use self::screen::Screen;

/// Turns what a program wrote into what is seen in the end; fed in chunks.
#[derive(Debug, Default)]
pub struct Terminal {
    screen: Screen,
    /// The sequence that has begun and not ended.
    escape: Option<Escape>,
}

impl Terminal {
    /// Takes the next chunk. Lines that nothing can change any more are appended to `seen`.
    pub fn feed(&mut self, mut bytes: &[u8], seen: &mut Vec<u8>) {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.escape.take() {
                Some(escape) => match escape.step(byte) {
                    Step::More(escape) => self.escape = Some(escape),
                    Step::Done(action) => self.act(action, seen),
                    // No byte of a sequence: it ends the sequence, and is looked at for itself.
                    Step::Broken => continue,
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

    /// What is still on the screen, once there is no more to come.
    pub fn finish(self, seen: &mut Vec<u8>) {
        self.screen.finish(seen);
    }

    fn control(&mut self, byte: u8, seen: &mut Vec<u8>) {
        match byte {
            b'\n' => self.screen.line_feed(seen),
            b'\r' => self.screen.go_to_column(0),
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

/// The whole of an output as it is seen in the end.
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

/// Whether a byte is put on the screen as it is. Controls that no terminal acts on are: dropped, they
/// would join what they stand between.
fn is_text(byte: u8) -> bool {
    !matches!(byte, b'\n' | b'\r' | BACKSPACE | BELL | ESCAPE)
}
