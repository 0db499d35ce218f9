//! Expansions that begin with `$`: variables, substitutions, arithmetic.

use super::super::UnparsedKind;
use super::super::syntax::{Piece, RawWord};
use super::{Parser, is_name, is_name_byte};

/// Operators between a variable's name and a word. Longer operators come before their own prefixes.
const OPERATORS: &[&str] = &[
    ":=", ":-", ":+", ":?", "=", "-", "+", "?", "%%", "%", "##", "#", "//", "/", "^^", "^", ",,",
    ",",
];

/// Letters after `@` that only transform a value. `P` is excluded: it expands the value and can run commands.
const TRANSFORMATIONS: &[u8] = b"QUuLEAKak";

impl Parser<'_> {
    /// Parses the expansion that begins with `$`.
    pub(super) fn dollar(&mut self, quoted: bool) -> Option<Piece> {
        let start = self.at;
        self.at += 1;
        let piece = match self.peek() {
            Some(b'(') if self.starts_with("((") => {
                self.at += 2;
                self.expression("))", quoted)
            }
            Some(b'(') => {
                self.parsed.offsets.push(start);
                self.at += 1;
                let list = self.list();
                if !self.pending.is_empty() {
                    self.fail(
                        UnparsedKind::Unsupported,
                        "a here-document begins in a substitution",
                    );
                }
                self.close(")");
                Piece::Commands { list, quoted }
            }
            Some(b'{') => return self.nested(|parser| parser.braces(quoted)),
            Some(b'[') => {
                self.at += 1;
                self.note_unsupported("it uses `$[ ]` arithmetic");
                self.expression("]", quoted)
            }
            Some(b'\'') if !quoted => return self.ansi_quotes(),
            Some(b'"') if !quoted => {
                self.note_unsupported("it uses a translated string (`$\"`)");
                return None;
            }
            Some(byte) if is_name_byte(byte) && !byte.is_ascii_digit() => {
                Piece::Variable { name: self.name(), quoted }
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-') => {
                self.at += 1;
                Piece::Unknown { inner: Vec::new(), quoted }
            }
            _ => Piece::Literal { text: "$".to_owned(), quoted: true },
        };
        Some(piece)
    }

    fn name(&mut self) -> String {
        let rest = &self.bytes[self.at..self.end];
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let name = self.text[self.at..self.at + length].to_owned();
        self.at += length;
        name
    }

    /// Parses `(( … ))` as a word.
    pub(super) fn double_parentheses(&mut self) -> RawWord {
        let start = self.at;
        self.at += 2;
        let pieces = vec![self.expression("))", true)];
        RawWord { start, end: self.at, pieces }
    }

    /// Parses an arithmetic expression and the `end` after it. Only numbers, operators and variables are
    /// supported.
    fn expression(&mut self, end: &str, quoted: bool) -> Piece {
        let (mut inner, mut names) = (Vec::new(), Vec::new());
        let (mut open, mut is_plain, mut assigns) = (Vec::new(), true, false);
        while let Some(byte) = self.peek() {
            if open.is_empty() && self.starts_with(end) {
                break;
            }
            match byte {
                b'$' | b'`' => {
                    let piece = match byte {
                        b'$' => self.nested(|parser| parser.dollar(true)),
                        _ => self.backquotes(true),
                    };
                    match piece {
                        Some(Piece::Variable { name, .. }) => names.push(name),
                        piece => {
                            is_plain = false;
                            inner.extend(piece);
                        }
                    }
                    continue;
                }
                b'"' if end == "]" => {
                    is_plain = false;
                    self.double_quotes(&mut inner);
                    continue;
                }
                b'\'' if end == "]" && !quoted => {
                    is_plain = false;
                    self.single_quotes(&mut inner);
                    continue;
                }
                b'"' | b'\'' | b'\\' => {
                    self.fail(
                        UnparsedKind::Unsupported,
                        "an arithmetic expression contains a quote",
                    );
                }
                b'(' => open.push(b')'),
                b'[' => {
                    is_plain = false;
                    open.push(b']');
                }
                b')' | b']' if open.pop() != Some(byte) => {
                    self.fail(
                        UnparsedKind::Unsupported,
                        "an arithmetic expression contains a bracket",
                    );
                }
                b')' | b']' => {}
                b'0'..=b'9' => {
                    self.skip_number();
                    continue;
                }
                byte if is_name_byte(byte) => {
                    names.push(self.name());
                    continue;
                }
                b'=' | b'<' | b'>' | b'!' | b'+' | b'-' => assigns |= self.skip_operator(),
                b' ' | b'\t' | b'\n' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'?'
                | b':' | b',' | b';' => {}
                _ => is_plain = false,
            }
            self.at = (self.at + 1).min(self.end);
        }
        if !self.take(end) {
            self.fail(UnparsedKind::SyntaxError, &format!("`{end}` is missing"));
        }
        if assigns {
            self.parsed.assigned_indirectly.extend(names.iter().cloned());
        }
        if assigns || !is_plain {
            self.note_unsupported("an arithmetic expression has more than numbers and variables");
        }
        Piece::Arithmetic { inner, names, quoted }
    }

    /// `42`, `0x2a`, `10#`.
    fn skip_number(&mut self) {
        while self.peek().is_some_and(|byte| is_name_byte(byte) || matches!(byte, b'#' | b'@')) {
            self.at += 1;
        }
    }

    /// Moves to the last character of an operator. Returns whether the operator assigns to a variable.
    fn skip_operator(&mut self) -> bool {
        let operators = [
            ("<<=", true),
            (">>=", true),
            ("<=", false),
            (">=", false),
            ("==", false),
            ("!=", false),
            ("++", true),
            ("--", true),
            ("=", true),
        ];
        let found = operators.into_iter().find(|(operator, _)| self.starts_with(operator));
        let (operator, assigns) = found.unwrap_or(("x", false));
        self.at += operator.len() - 1;
        assigns
    }

    /// Parses `${…}` in the forms that look up a value, cut it or give it a default.
    fn braces(&mut self, quoted: bool) -> Option<Piece> {
        self.at += 1;
        let is_indirect = self.peek() == Some(b'!') && self.peek_at(1) != Some(b'}');
        let counts = self.peek() == Some(b'#')
            && self
                .peek_at(1)
                .is_some_and(|byte| is_name_byte(byte) || matches!(byte, b'@' | b'*'));
        self.at += usize::from(is_indirect || counts);
        let mut name = self.name();
        let is_special = name.is_empty()
            && matches!(self.peek(), Some(b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-'));
        // `$@` and `$*` can expand to several words or none, even inside quotes.
        let is_several = is_special && matches!(self.peek(), Some(b'@' | b'*'));
        self.at += usize::from(is_special);
        let is_position = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if !is_special && !is_position && !is_name(&name) {
            self.fail(UnparsedKind::Unsupported, "a `${…}` expansion is not supported");
            return None;
        }
        if !is_name(&name) {
            name.clear();
        }
        let is_all = self.take("[@]") || self.take("[*]");
        let mut inner: Vec<Piece> = self.subscript(quoted).into_iter().collect();
        let value = |inner: Vec<Piece>| {
            let quoted = quoted && (counts || !is_several && !is_all);
            Some(Piece::Unknown { inner, quoted })
        };
        if counts {
            self.expect_brace();
            return value(inner);
        }
        if is_indirect && (is_all || self.take("*") || self.take("@")) {
            // The names of variables, or the keys of an array.
            self.expect_brace();
            return Some(Piece::Unknown { inner, quoted: false });
        }
        if is_indirect {
            self.note_unsupported("a variable's name comes from another variable");
        }
        if self.take("}") {
            let is_plain = !name.is_empty() && !is_indirect && !is_all && inner.is_empty();
            return if is_plain { Some(Piece::Variable { name, quoted }) } else { value(inner) };
        }
        let operator = OPERATORS.iter().find(|operator| self.take(operator));
        if let Some(operator) = operator {
            if operator.ends_with('=') && !name.is_empty() {
                *self.parsed.assignment_counts.entry(name.clone()).or_default() += 2;
                self.parsed.assigned_by_expansion.push(name);
            }
            inner.extend(self.brace_pieces(quoted));
            self.expect_brace();
        } else if self.take(":") {
            inner.push(self.expression("}", quoted));
        } else if self.take("@") && self.peek().is_some_and(|form| TRANSFORMATIONS.contains(&form))
        {
            self.at += 1;
            self.expect_brace();
        } else {
            self.fail(UnparsedKind::Unsupported, "a `${…}` expansion is not supported");
        }
        value(inner)
    }

    /// Parses the `[ … ]` after the name of an array, if there is one.
    pub(super) fn subscript(&mut self, quoted: bool) -> Option<Piece> {
        self.take("[").then(|| self.expression("]", quoted))
    }

    fn expect_brace(&mut self) {
        match self.peek() {
            Some(b'}') => self.at += 1,
            Some(_) => self.fail(UnparsedKind::Unsupported, "a `${…}` expansion is not supported"),
            None => self.fail(UnparsedKind::SyntaxError, "`}` is missing"),
        }
    }
}
