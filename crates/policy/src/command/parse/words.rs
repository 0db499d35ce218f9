//! Words: quotes, escapes and backquotes.

use super::super::UnparsedKind;
use super::super::syntax::{Piece, RawWord};
use super::{Parser, ends_word};

/// Where a sequence of pieces ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminator {
    /// At whitespace or an operator.
    Meta,
    /// At a double quote.
    Quote,
    /// At the closing brace of `${name:-…}`.
    Brace { quoted: bool },
    /// At the end of a here-document.
    End,
}

impl Terminator {
    fn quoted(self) -> bool {
        matches!(self, Terminator::Quote | Terminator::End | Terminator::Brace { quoted: true })
    }
}

impl Parser<'_> {
    /// Parses the word that begins here.
    pub(super) fn word(&mut self) -> RawWord {
        let start = self.at;
        let mut pieces = Vec::new();
        // `#` would begin a comment here, and every caller skips comments first.
        if self.peek() == Some(b'#') {
            self.fail(UnparsedKind::Unsupported, "a comment is in the place of a word");
        }
        if self.starts_with("<(") || self.starts_with(">(") {
            self.parsed.offsets.push(self.at);
            self.at += 2;
            let list = self.list();
            self.close(")");
            pieces.push(Piece::Commands { list, quoted: true });
        }
        pieces.extend(self.pieces(Terminator::Meta));
        if self.starts_with("<(") || self.starts_with(">(") {
            self.fail(UnparsedKind::Unsupported, "a word contains a process substitution");
        }
        if pieces.is_empty() && self.at == start {
            self.fail(UnparsedKind::Unsupported, "a word is missing");
        }
        // `{name}>file` stores a descriptor number in a variable.
        let is_handle = |text: &str| text.strip_prefix('{').is_some_and(|text| text.ends_with('}'));
        let word = RawWord { start, end: self.at, pieces };
        if matches!(self.peek(), Some(b'<' | b'>')) && word.plain().is_some_and(is_handle) {
            self.fail(UnparsedKind::Unsupported, "a descriptor is assigned to a variable");
        }
        word
    }

    pub(super) fn here_pieces(&mut self) -> Vec<Piece> {
        self.pieces(Terminator::End)
    }

    /// Parses the word inside `${name:-…}`.
    pub(super) fn brace_pieces(&mut self, quoted: bool) -> Vec<Piece> {
        self.pieces(Terminator::Brace { quoted })
    }

    fn pieces(&mut self, terminator: Terminator) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut run = self.at;
        while let Some(byte) = self.peek() {
            let ends = match terminator {
                Terminator::Meta => ends_word(byte),
                Terminator::Quote => byte == b'"',
                Terminator::Brace { .. } => byte == b'}',
                Terminator::End => false,
            };
            if ends {
                break;
            }
            let is_special = match byte {
                b'\\' | b'$' | b'`' => true,
                b'\'' | b'"' => matches!(terminator, Terminator::Meta | Terminator::Brace { .. }),
                _ => false,
            };
            if !is_special {
                // Terminals and shells differ in how they treat control characters.
                if byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t') {
                    self.note_unsupported("it contains a control character");
                }
                self.at += 1;
                continue;
            }
            self.push_run(&mut pieces, run, terminator);
            match byte {
                b'\\' => self.backslash(&mut pieces, terminator),
                b'\'' if terminator.quoted() => {
                    self.fail(UnparsedKind::Unsupported, "a quoted `${…}` contains a quote");
                }
                b'\'' => self.single_quotes(&mut pieces),
                b'"' => self.double_quotes(&mut pieces),
                b'`' => pieces.extend(self.backquotes(terminator.quoted())),
                _ => pieces.extend(self.dollar(terminator.quoted())),
            }
            run = self.at;
        }
        self.push_run(&mut pieces, run, terminator);
        pieces
    }

    fn push_run(&self, pieces: &mut Vec<Piece>, from: usize, terminator: Terminator) {
        if !self.stopped && from < self.at {
            let text = self.text.get(from..self.at).unwrap_or_default().to_owned();
            pieces.push(Piece::Literal { text, quoted: terminator.quoted() });
        }
    }

    fn backslash(&mut self, pieces: &mut Vec<Piece>, terminator: Terminator) {
        let Some(next) = self.text.get(self.at + 1..self.end).and_then(|rest| rest.chars().next())
        else {
            self.fail(UnparsedKind::Unsupported, "it ends with a backslash");
            return;
        };
        let escapes = !terminator.quoted() || matches!(next, '$' | '`' | '"' | '\\' | '\n');
        let text = match (escapes, next) {
            (true, '\n') => String::new(),
            // In a here-document a backslash does not escape a quote.
            (true, '"') if terminator == Terminator::End => "\\\"".to_owned(),
            (true, next) => next.to_string(),
            (false, next) => format!("\\{next}"),
        };
        self.at += 1 + next.len_utf8();
        if next != '\n' || !escapes {
            pieces.push(Piece::Literal { text, quoted: true });
        }
    }

    pub(super) fn single_quotes(&mut self, pieces: &mut Vec<Piece>) {
        let start = self.at + 1;
        let Some(length) = self.bytes[start..self.end].iter().position(|byte| *byte == b'\'')
        else {
            self.fail(UnparsedKind::SyntaxError, "a quote is not closed");
            return;
        };
        let text = self.text[start..start + length].to_owned();
        pieces.push(Piece::Literal { text, quoted: true });
        self.at = start + length + 1;
    }

    pub(super) fn double_quotes(&mut self, pieces: &mut Vec<Piece>) {
        self.at += 1;
        let inner = self.nested(|parser| parser.pieces(Terminator::Quote));
        // An empty quoted string is still a word.
        pieces.push(Piece::Literal { text: String::new(), quoted: true });
        pieces.extend(inner);
        if !self.take("\"") {
            self.fail(UnparsedKind::SyntaxError, "a quote is not closed");
        }
    }

    pub(super) fn backquotes(&mut self, quoted: bool) -> Option<Piece> {
        self.parsed.offsets.push(self.at);
        let start = self.at + 1;
        let mut text = String::new();
        let mut letters = self.text.get(start..self.end).unwrap_or_default().char_indices();
        let length = loop {
            match letters.next() {
                Some((at, '`')) => break at,
                Some((_, '\\')) => match letters.next() {
                    Some((_, next @ ('$' | '`' | '\\'))) => text.push(next),
                    Some((_, '"')) if quoted => text.push('"'),
                    Some((_, next)) => text.extend(['\\', next]),
                    None => {}
                },
                Some((_, letter)) => text.push(letter),
                None => {
                    self.fail(UnparsedKind::SyntaxError, "a backquote is not closed");
                    return None;
                }
            }
        };
        self.at = start + length + 1;
        if text.len() != length {
            self.note_unsupported("backquotes contain a backslash");
            return Some(Piece::Script { text, quoted });
        }
        let list = self.parse_range(start, start + length, Parser::list);
        Some(Piece::Commands { list, quoted })
    }

    /// Parses `$'…'` with C escapes.
    pub(super) fn ansi_quotes(&mut self) -> Option<Piece> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(next) = self.text.get(self.at..self.end).and_then(|rest| rest.chars().next())
            else {
                self.fail(UnparsedKind::SyntaxError, "a quote is not closed");
                return None;
            };
            self.at += next.len_utf8();
            match next {
                '\'' => return Some(Piece::Literal { text, quoted: true }),
                '\\' => match self.ansi_escape() {
                    Some(letter) => text.push(letter),
                    None => {
                        self.fail(UnparsedKind::Unsupported, "an escape sequence is not supported");
                        return None;
                    }
                },
                other => text.push(other),
            }
        }
    }

    fn ansi_escape(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        let (digits, radix) = match byte {
            b'x' => (2, 16),
            b'u' => (4, 16),
            b'U' => (8, 16),
            b'0'..=b'7' => {
                self.at -= 1;
                (3, 8)
            }
            b'n' => return Some('\n'),
            b't' => return Some('\t'),
            b'\\' | b'\'' | b'"' | b'?' => return Some(char::from(byte)),
            // The other escapes make control characters, which no ordinary command contains.
            _ => return None,
        };
        let rest = &self.bytes[self.at..self.end];
        let length =
            rest.iter().take(digits).take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let number = u32::from_str_radix(&self.text[self.at..self.at + length], radix).ok()?;
        self.at += length;
        // A byte above ASCII is part of a multi-byte character, and NUL ends the string.
        let is_byte = matches!(byte, b'x' | b'0'..=b'7');
        char::from_u32(number).filter(|_| number != 0 && (!is_byte || number < 0x80))
    }
}
