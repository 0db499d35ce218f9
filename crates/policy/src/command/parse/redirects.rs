//! Redirections and here-documents.

use std::borrow::Cow;

use super::super::UnparsedKind;
use super::super::syntax::{Operator, Piece, Redirect, Target};
use super::{Parser, ends_word};

/// A here-document whose body begins on the next line.
pub(super) struct Pending {
    number: usize,
    delimiter: String,
    quoted: bool,
    strips_tabs: bool,
}

impl Parser<'_> {
    /// Parses a redirection. Returns `false` if there is none here.
    pub(super) fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> bool {
        let digits =
            self.bytes[self.at..self.end].iter().take_while(|byte| byte.is_ascii_digit()).count();
        // Nearly every word is no redirection.
        match self.peek_at(digits) {
            Some(b'<' | b'>') => {}
            Some(b'&') if digits == 0 => {}
            _ => return false,
        }
        let before = self.at;
        self.at += digits;
        let operators = [
            ("<<<", Operator::Text),
            ("<<-", Operator::Text),
            ("<<", Operator::Text),
            ("<>", Operator::ReadWrite),
            ("<&", Operator::Duplicate),
            ("<", Operator::Read),
            (">>", Operator::Write),
            (">|", Operator::Write),
            (">&", Operator::Duplicate),
            (">", Operator::Write),
            ("&>>", Operator::Write),
            ("&>", Operator::Write),
        ];
        let substitution = digits == 0 && (self.starts_with("<(") || self.starts_with(">("));
        let found = operators
            .into_iter()
            .filter(|(sign, _)| !substitution && (digits == 0 || !sign.starts_with('&')))
            .find(|(sign, _)| self.take(sign));
        let Some((sign, operator)) = found else {
            self.at = before;
            return false;
        };
        self.skip_blanks();
        if self.peek().is_none_or(ends_word) && !self.starts_with("<(") && !self.starts_with(">(") {
            self.fail(UnparsedKind::SyntaxError, "a redirection has no target");
            return true;
        }
        if sign == "<<" || sign == "<<-" {
            self.begin_here_document(sign == "<<-", redirects);
            return true;
        }
        self.parsed.offsets.push(self.at);
        let word = self.word();
        let is_number = word
            .plain()
            .is_some_and(|text| text == "-" || text.bytes().all(|byte| byte.is_ascii_digit()));
        let operator = match (operator, sign) {
            (Operator::Duplicate, _) if is_number => Operator::Duplicate,
            // `>& file` means `&> file`.
            (Operator::Duplicate, ">&") if digits == 0 => Operator::Write,
            (Operator::Duplicate, _) => {
                self.note_unsupported("a redirection has an unknown descriptor");
                Operator::Duplicate
            }
            (other, _) => other,
        };
        redirects.push(Redirect { operator, target: Target::Word(word) });
        true
    }

    fn begin_here_document(&mut self, strips_tabs: bool, redirects: &mut Vec<Redirect>) {
        let word = self.word();
        let Some(delimiter) = word.literal().map(Cow::into_owned) else {
            self.fail(
                UnparsedKind::Unsupported,
                "the delimiter of a here-document is not a plain word",
            );
            return;
        };
        let number = self.parsed.here_documents.len();
        self.parsed.here_documents.push(Vec::new());
        let quoted = word.plain().is_none();
        self.pending.push(Pending { number, delimiter, quoted, strips_tabs });
        redirects.push(Redirect { operator: Operator::Text, target: Target::Here(number) });
    }

    /// Parses the body of a here-document, which begins here.
    pub(super) fn here_document(&mut self, pending: &Pending) {
        let (start, text) = (self.at, self.text);
        let mut line_start = start;
        let mut continues = false;
        let body_end = loop {
            if line_start >= self.end {
                // Bash warns and uses the rest of the text.
                self.fail(UnparsedKind::Unsupported, "a here-document is not terminated");
                return;
            }
            let rest = &text[line_start..self.end];
            let line = rest.split('\n').next().unwrap_or_default();
            let bare = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
            if bare == pending.delimiter && !continues {
                self.at = (line_start + line.len() + 1).min(self.end);
                break line_start;
            }
            let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            continues = !pending.quoted && backslashes % 2 == 1;
            if continues {
                self.note_unsupported("a line of a here-document continues on the next");
            }
            line_start += line.len() + 1;
        };
        let body = &text[start..body_end];
        if !pending.quoted && has_quoted_default(body) {
            self.note_unsupported("a `${…}` in a here-document contains quotes");
        }
        let body = if pending.quoted {
            vec![Piece::Literal { text: body.to_owned(), quoted: true }]
        } else {
            self.parse_range(start, body_end, Self::here_pieces)
        };
        self.parsed.here_documents[pending.number] = body;
    }
}

/// Whether a `${…}` contains quotes. Shells differ in their meaning in a here-document.
fn has_quoted_default(body: &str) -> bool {
    let mut expansions = body.split("${").skip(1);
    expansions.any(|rest| rest.split('}').next().is_some_and(|inner| inner.contains('"')))
}
