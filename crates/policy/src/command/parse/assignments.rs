//! Variables that a command sets: before its name, or by its arguments.

use super::super::Trouble;
use super::super::syntax::{Assignment, Piece, RawWord, Simple};
use super::{Parser, is_meta, is_name, is_name_byte};

/// Commands that set variables whose names need not stand in the text.
const SETTERS: &[&str] = &[
    "eval",
    "source",
    ".",
    "read",
    "declare",
    "typeset",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "trap",
    "coproc",
];

/// Commands that set the variables that they name.
const NAMERS: &[&str] = &["export", "readonly", "local", "unset", "printf"];

impl Parser<'_> {
    /// `name=value`, where that is what stands here.
    pub(super) fn assignment(&mut self, assignments: &mut Vec<Assignment>) -> bool {
        let rest = &self.bytes[self.at..self.end];
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let name = self.text[self.at..self.at + length].to_owned();
        if !is_name(&name) {
            return false;
        }
        let mut subscript = None;
        // An array, and what is added to, have other values besides this one.
        let times = match rest.get(length..) {
            Some([b'=', b'(', ..]) => 2,
            Some([b'=', ..]) => 1,
            Some([b'+', b'=', ..]) => 2,
            Some([b'[', behind @ ..]) if is_element_assignment(behind) => {
                self.at += length;
                subscript = self.subscript(false);
                self.doubt("an element of an array is set");
                2
            }
            _ => return false,
        };
        if subscript.is_none() {
            self.at += length;
        }
        self.take("+");
        self.take("=");
        *self.parsed.assigned.entry(name.clone()).or_default() += times;
        let mut value = match self.peek() {
            Some(b'(') => self.array(),
            Some(byte) if !is_meta(byte) => self.word(),
            _ => RawWord { start: self.at, end: self.at, pieces: Vec::new() },
        };
        value.pieces.extend(subscript);
        if value.plain().is_some_and(|text| text.contains('~')) {
            self.doubt("`~` in the value of a variable");
        }
        assignments.push(Assignment { name, value });
        true
    }

    /// Variables that a command sets by its arguments.
    pub(super) fn note_what_it_sets(&mut self, simple: &Simple) {
        let literals: Vec<Option<String>> = simple.words.iter().map(RawWord::literal).collect();
        for (number, word) in literals.iter().enumerate() {
            let Some(word) = word else { continue };
            let names_others = NAMERS.contains(&word.as_str())
                && literals[number + 1..].iter().any(Option::is_none)
                && (word != "printf"
                    || literals.get(number + 1).is_none_or(|first| {
                        first.as_ref().is_none_or(|first| first.starts_with('-'))
                    }));
            let sets = if word == "." { number == 0 } else { SETTERS.contains(&word.as_str()) };
            self.parsed.sets_unseen |= sets || names_others;
            let word = word.strip_prefix("-v").unwrap_or(word);
            let length = word.bytes().take_while(|byte| is_name_byte(*byte)).count();
            let named = matches!(word.as_bytes().get(length), None | Some(b'=' | b'[' | b'+'));
            if named && is_name(&word[..length]) {
                self.parsed.mentioned.insert(word[..length].to_owned());
            }
        }
    }

    /// `( … )` behind `name=`: the elements of an array.
    fn array(&mut self) -> RawWord {
        let start = self.at;
        self.at += 1;
        let mut inner = Vec::new();
        loop {
            self.skip_lines();
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'[') => self.doubt("an element of an array is set"),
                Some(byte) if is_meta(byte) && !self.starts("<(") && !self.starts(">(") => {
                    self.fail(Trouble::Unclear, "an array that is not understood");
                }
                Some(_) => {}
                None => self.fail(Trouble::Broken, "`)` is missing"),
            }
            if self.stopped {
                break;
            }
            inner.extend(self.word().pieces);
        }
        let pieces = vec![Piece::Unknown { inner, quoted: false }];
        RawWord { start, end: self.at, pieces }
    }
}

/// Whether `…]=` stands here, and not a pattern such as `[a-z]*`.
fn is_element_assignment(behind: &[u8]) -> bool {
    let mut depth = 0_usize;
    for (at, byte) in behind.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => {
                return matches!(behind.get(at + 1..), Some([b'=', ..] | [b'+', b'=', ..]));
            }
            b']' => depth -= 1,
            b'\n' => return false,
            _ => {}
        }
    }
    false
}
