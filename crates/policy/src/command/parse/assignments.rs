//! Variables that a command sets before its name or by its arguments.

use std::borrow::Cow;

use super::super::UnparsedKind;
use super::super::syntax::{Piece, RawAssignment, RawWord, Simple};
use super::{Parser, ends_word, is_name, is_name_byte};

/// Commands that can set variables whose names are not in the text.
const INDIRECT_SETTERS: &[&str] = &[
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

/// Commands that set the variables named in their arguments.
const NAMED_SETTERS: &[&str] = &["export", "readonly", "local", "unset", "printf"];

impl Parser<'_> {
    /// Parses `name=value`. Returns `false` if there is no assignment here.
    pub(super) fn assignment(&mut self, assignments: &mut Vec<RawAssignment>) -> bool {
        let (text, rest) = (self.text, &self.bytes[self.at..self.end]);
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let name = &text[self.at..self.at + length];
        if !is_name(name) {
            return false;
        }
        let mut subscript = None;
        // An array or an appended variable (`+=`) has other values too, so it counts as assigned twice.
        let count = match rest.get(length..) {
            Some([b'=', b'(', ..]) => 2,
            Some([b'=', ..]) => 1,
            Some([b'+', b'=', ..]) => 2,
            Some([b'[', after @ ..]) if is_element_assignment(after) => {
                self.at += length;
                subscript = self.subscript(false);
                self.note_unsupported("an element of an array is set");
                2
            }
            _ => return false,
        };
        if subscript.is_none() {
            self.at += length;
        }
        self.take("+");
        self.take("=");
        *self.parsed.assignment_counts.entry(name.to_owned()).or_default() += count;
        let mut value = match self.peek() {
            Some(b'(') => self.array(),
            Some(byte) if !ends_word(byte) => self.word(),
            _ => RawWord { start: self.at, end: self.at, pieces: Vec::new() },
        };
        value.pieces.extend(subscript);
        if value.plain().is_some_and(|text| text.contains('~')) {
            self.note_unsupported("a variable's value contains `~`");
        }
        assignments.push(RawAssignment { name: name.to_owned(), value });
        true
    }

    /// Records the variables that a command sets by its arguments.
    pub(super) fn record_assigned_names(&mut self, simple: &Simple) {
        let literals: Vec<Option<Cow<'_, str>>> =
            simple.words.iter().map(RawWord::literal).collect();
        for (number, word) in literals.iter().enumerate() {
            let Some(word) = word else { continue };
            let names_others = NAMED_SETTERS.contains(&word.as_ref())
                && literals[number + 1..].iter().any(Option::is_none)
                && (word != "printf"
                    || literals.get(number + 1).is_none_or(|first| {
                        first.as_ref().is_none_or(|first| first.starts_with('-'))
                    }));
            let sets =
                if word == "." { number == 0 } else { INDIRECT_SETTERS.contains(&word.as_ref()) };
            self.parsed.sets_unknown_variables |= sets || names_others;
            let word = word.strip_prefix("-v").unwrap_or(word);
            let length = word.bytes().take_while(|byte| is_name_byte(*byte)).count();
            let named = matches!(word.as_bytes().get(length), None | Some(b'=' | b'[' | b'+'));
            let name = &word[..length];
            if named && is_name(name) && !self.parsed.assigned_indirectly.contains(name) {
                self.parsed.assigned_indirectly.insert(name.to_owned());
            }
        }
    }

    /// Parses `( … )` after `name=`: the elements of an array.
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
                Some(b'[') => self.note_unsupported("an element of an array is set"),
                Some(byte)
                    if ends_word(byte) && !self.starts_with("<(") && !self.starts_with(">(") =>
                {
                    self.fail(UnparsedKind::Unsupported, "an array is not supported");
                }
                Some(_) => {}
                None => self.fail(UnparsedKind::SyntaxError, "`)` is missing"),
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

/// Whether `…]=` follows, rather than a pattern such as `[a-z]*`.
fn is_element_assignment(after: &[u8]) -> bool {
    let mut depth = 0_usize;
    for (at, byte) in after.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => {
                return matches!(after.get(at + 1..), Some([b'=', ..] | [b'+', b'=', ..]));
            }
            b']' => depth -= 1,
            b'\n' => return false,
            _ => {}
        }
    }
    false
}
