//! Parses escape sequences byte by byte.

use super::{BELL, ESCAPE};

/// A longer title or link is treated as text: a stray escape must not swallow an output.
const MAX_STRING: usize = 4096;

/// Larger numbers are clamped. They exceed any screen.
const MAX_NUMBER: u16 = 9999;

/// An incomplete sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Escape {
    /// `ESC` and intermediate bytes.
    #[default]
    Begun,
    /// `ESC [`.
    Control(Parameters),
    /// A title, a link or similar, up to a bell or `ESC \`.
    String { length: usize, ending: bool },
}

/// The numbers of a sequence. No action takes more than two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    numbers: [u16; 2],
    index: usize,
    /// It has markers that give its final byte another meaning.
    private: bool,
}

/// The effect of a byte on a sequence.
pub(super) enum Step {
    More(Escape),
    Done(Action),
    Invalid,
}

/// The effect of a sequence on the screen. Rows and columns count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A colour, a title, or anything else that changes no text.
    Nothing,
    Up(usize),
    Down(usize),
    Left(usize),
    Right(usize),
    Column(usize),
    Position(usize, usize),
    EraseLineRight,
    EraseLineLeft,
    EraseLine,
    EraseBelow,
    EraseAbove,
    Clear,
    NextLine,
    Save,
    Restore,
}

impl Escape {
    pub(super) fn step(self, byte: u8) -> Step {
        match self {
            Escape::Begun => first_byte(byte),
            Escape::Control(parameters) => parameters.step(byte),
            Escape::String { ending: true, .. } if byte == b'\\' => Step::Done(Action::Nothing),
            Escape::String { ending: true, .. } => first_byte(byte),
            Escape::String { length, .. } => match byte {
                BELL => Step::Done(Action::Nothing),
                ESCAPE => Step::More(Escape::String { length, ending: true }),
                b'\n' | b'\r' => Step::Invalid,
                _ if length >= MAX_STRING => Step::Invalid,
                _ => Step::More(Escape::String { length: length + 1, ending: false }),
            },
        }
    }
}

fn first_byte(byte: u8) -> Step {
    match byte {
        b'[' => Step::More(Escape::Control(Parameters::default())),
        b']' | b'P' | b'X' | b'^' | b'_' => Step::More(Escape::String { length: 0, ending: false }),
        b' '..=b'/' => Step::More(Escape::Begun),
        b'7' => Step::Done(Action::Save),
        b'8' => Step::Done(Action::Restore),
        b'D' | b'E' => Step::Done(Action::NextLine),
        b'M' => Step::Done(Action::Up(1)),
        b'c' => Step::Done(Action::Clear),
        b'0'..=b'~' => Step::Done(Action::Nothing),
        _ => Step::Invalid,
    }
}

impl Parameters {
    fn step(mut self, byte: u8) -> Step {
        match byte {
            b'0'..=b'9' => {
                if let Some(number) = self.numbers.get_mut(self.index) {
                    let digit = u16::from(byte - b'0');
                    *number = number.saturating_mul(10).saturating_add(digit).min(MAX_NUMBER);
                }
            }
            b';' | b':' => self.index += 1,
            b' '..=b'/' | b'<'..=b'?' => self.private = true,
            b'@'..=b'~' => return Step::Done(self.action(byte)),
            _ => return Step::Invalid,
        }
        Step::More(Escape::Control(self))
    }

    fn action(self, letter: u8) -> Action {
        let [first, second] = self.numbers.map(usize::from);
        // A missing count is one, and zero counts as one.
        let count = first.max(1);
        match letter {
            _ if self.private => Action::Nothing,
            b'A' => Action::Up(count),
            b'B' | b'e' => Action::Down(count),
            b'C' | b'a' => Action::Right(count),
            b'D' => Action::Left(count),
            b'G' | b'`' => Action::Column(count - 1),
            b'H' | b'f' => Action::Position(count - 1, second.max(1) - 1),
            b'J' => match first {
                0 => Action::EraseBelow,
                1 => Action::EraseAbove,
                _ => Action::Clear,
            },
            b'K' => match first {
                0 => Action::EraseLineRight,
                1 => Action::EraseLineLeft,
                _ => Action::EraseLine,
            },
            b's' => Action::Save,
            b'u' => Action::Restore,
            _ => Action::Nothing,
        }
    }
}
