//! A strict parser for the supported part of the shell's language.
//!
//! It is small enough to be checked by reading. It never guesses: at unsupported syntax it records the
//! problem and stops. The commands parsed so far are still checked for destructive ones.

mod assignments;
mod blocks;
mod expansions;
mod redirects;
mod words;

use std::collections::{HashMap, HashSet};

use self::redirects::Pending;
use super::syntax::{CompoundKind, Entry, List, Node, Piece, Simple};
use super::{MAX_COMMANDS, MAX_DEPTH, Unparsed, UnparsedKind};

/// A script, as far as it was parsed.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) list: List,
    /// The bodies of here-documents.
    pub(super) here_documents: Vec<Vec<Piece>>,
    /// Why part of the script is unparsed.
    pub(super) unparsed: Option<Unparsed>,
    /// The sorted offsets of commands, redirections and substitutions, which tree-sitter must find too.
    pub(super) offsets: Vec<usize>,
    /// The number of assignments to each variable.
    pub(super) assignment_counts: HashMap<String, usize>,
    /// Names that commands may set by other means (`read x`, `printf -v x`).
    pub(super) assigned_indirectly: HashSet<String>,
    /// Variables that expansions set (`${x:=…}`).
    pub(super) assigned_by_expansion: Vec<String>,
    /// Whether a command may set variables that are not named in the text.
    pub(super) sets_unknown_variables: bool,
}

/// Parses a script.
pub(super) fn parse(text: &str) -> Parsed {
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        end: text.len(),
        depth: 0,
        commands: 0,
        stopped: false,
        pending: Vec::new(),
        parsed: Parsed::default(),
    };
    if text.contains('\0') {
        parser.fail(UnparsedKind::SyntaxError, "it contains a NUL character");
    }
    let list = parser.list();
    if parser.at < parser.end {
        parser.fail(UnparsedKind::Unsupported, "a bracket or a word such as `done` is unmatched");
    }
    if !parser.pending.is_empty() {
        // Bash warns and uses the rest of the text.
        parser.fail(UnparsedKind::Unsupported, "a here-document is not terminated");
    }
    parser.parsed.offsets.sort_unstable();
    parser.parsed.list = list;
    parser.parsed
}

/// After a failure the position is the end of the text, so that every loop ends. The result so far is
/// kept.
struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    end: usize,
    depth: usize,
    commands: usize,
    stopped: bool,
    pending: Vec<Pending>,
    parsed: Parsed,
}

/// Reserved words that end a list.
const LIST_ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser<'_> {
    fn fail(&mut self, kind: UnparsedKind, what: &str) {
        // After the first failure every enclosing quote and bracket looks unclosed.
        if !self.stopped {
            self.record(kind, what);
        }
        self.at = self.end;
        self.stopped = true;
        self.pending.clear();
    }

    /// Records unsupported syntax and continues.
    fn note_unsupported(&mut self, what: &str) {
        self.record(UnparsedKind::Unsupported, what);
    }

    /// Keeps the first problem of the worst kind.
    fn record(&mut self, kind: UnparsedKind, what: &str) {
        if self.parsed.unparsed.as_ref().is_none_or(|why| why.kind < kind) {
            self.parsed.unparsed = Some(Unparsed { kind, reason: what.to_owned() });
        }
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, by: usize) -> Option<u8> {
        self.bytes[..self.end].get(self.at + by).copied()
    }

    fn starts_with(&self, with: &str) -> bool {
        self.bytes[self.at..self.end].starts_with(with.as_bytes())
    }

    fn take(&mut self, with: &str) -> bool {
        let found = self.starts_with(with);
        if found {
            self.at += with.len();
        }
        found
    }

    /// Runs a parser one level deeper. Fails at the nesting limit.
    fn nested<T: Default>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_DEPTH {
            self.fail(
                UnparsedKind::Limit,
                &format!("it is nested more than {MAX_DEPTH} levels deep"),
            );
            return T::default();
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Skips whitespace, comments and newlines, and parses the here-documents that begin there.
    fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'#') => self.skip_comment(),
                Some(b'\n') => self.newline(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.bytes[self.at..self.end];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    fn newline(&mut self) {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            self.here_document(&pending);
        }
    }

    /// The text up to the next whitespace or operator. A reserved word has no quoting.
    fn reserved(&self) -> &str {
        let rest = &self.bytes[self.at..self.end];
        let length = rest.iter().position(|byte| ends_word(*byte)).unwrap_or(rest.len());
        self.text.get(self.at..self.at + length).unwrap_or_default()
    }

    fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.reserved() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect_reserved(&mut self, word: &str) {
        self.skip_lines();
        if !self.take_reserved(word) {
            self.fail(UnparsedKind::Unsupported, &format!("`{word}` is missing"));
        }
    }

    fn list(&mut self) -> List {
        self.nested(|parser| {
            let mut list = List::default();
            let mut depends = false;
            loop {
                parser.skip_lines();
                let ends = matches!(parser.peek(), None | Some(b')'))
                    || parser.starts_with(";;")
                    || parser.starts_with(";&")
                    || LIST_ENDS.contains(&parser.reserved());
                if ends {
                    if depends {
                        parser.fail(UnparsedKind::Unsupported, "no command follows `&&` or `||`");
                    }
                    return list;
                }
                let pipeline = parser.pipeline();
                parser.skip_blanks();
                let joined = parser.take("&&") || parser.take("||");
                let background = !joined && parser.take("&");
                list.0.push(Entry { is_conditional: depends, pipeline, background });
                depends = joined;
                if joined || background {
                    continue;
                }
                match parser.peek() {
                    Some(b';') if !parser.starts_with(";;") && !parser.starts_with(";&") => {
                        parser.at += 1;
                    }
                    Some(b'\n' | b'#' | b')' | b';') | None => {}
                    _ => {
                        parser.fail(
                            UnparsedKind::Unsupported,
                            "a command has unexpected text after it",
                        );
                    }
                }
            }
        })
    }

    fn pipeline(&mut self) -> Vec<Node> {
        while self.take_reserved("!") {
            self.skip_blanks();
        }
        let mut pipeline = Vec::new();
        loop {
            self.skip_lines();
            pipeline.extend(self.command());
            self.skip_blanks();
            let continues = self.peek() == Some(b'|') && self.peek_at(1) != Some(b'|');
            if !continues {
                return pipeline;
            }
            self.at += 1;
            self.take("&");
        }
    }

    fn command(&mut self) -> Option<Node> {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            self.fail(UnparsedKind::Limit, &format!("it has more than {MAX_COMMANDS} commands"));
        }
        self.peek()?;
        if self.starts_with("((") {
            return Some(self.calculation());
        }
        if self.take("(") {
            let list = self.list();
            self.close(")");
            return Some(self.compound(CompoundKind::Subshell, vec![list]));
        }
        let node = match self.reserved() {
            "{" => {
                self.at += 1;
                let list = self.list();
                self.expect_reserved("}");
                self.compound(CompoundKind::Group, vec![list])
            }
            "if" => self.branches_of_if(),
            "while" | "until" => {
                self.at += "while".len();
                let condition = self.list();
                let body = self.body_of_loop();
                self.compound(CompoundKind::Loop, vec![condition, body])
            }
            "for" => self.for_loop(),
            "case" => self.case(),
            "function" => {
                self.at += "function".len();
                self.skip_blanks();
                let name = self.word();
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    self.close(")");
                }
                self.function(&name)
            }
            "[[" => self.double_bracket(),
            word @ ("select" | "coproc") => {
                let what = format!("`{word}` is not supported");
                self.fail(UnparsedKind::Unsupported, &what);
                return None;
            }
            word if LIST_ENDS.contains(&word) => {
                let what = format!("`{word}` is unmatched");
                self.fail(UnparsedKind::Unsupported, &what);
                return None;
            }
            _ => return self.simple(),
        };
        Some(node)
    }

    fn close(&mut self, with: &str) {
        self.skip_lines();
        if !self.take(with) {
            self.fail(UnparsedKind::SyntaxError, &format!("`{with}` is missing"));
        }
    }

    fn simple(&mut self) -> Option<Node> {
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            if self.redirect(&mut simple.redirects) {
                continue;
            }
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') => break,
                Some(b'(') => return Some(self.function_or_fail(simple)),
                Some(_) => {}
            }
            if simple.words.is_empty() && self.assignment(&mut simple.assignments) {
                continue;
            }
            if simple.words.is_empty() {
                self.parsed.offsets.push(self.at);
            }
            simple.words.push(self.word());
        }
        let nothing =
            simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty();
        if nothing {
            self.fail(UnparsedKind::Unsupported, "a command is missing");
            return None;
        }
        self.record_assigned_names(&simple);
        Some(Node::Simple(simple))
    }

    fn function_or_fail(&mut self, mut simple: Simple) -> Node {
        let only_a_name =
            simple.words.len() == 1 && simple.assignments.is_empty() && simple.redirects.is_empty();
        self.at += 1;
        self.skip_blanks();
        match simple.words.pop() {
            Some(name) if only_a_name && self.take(")") => {
                self.parsed.offsets.pop();
                self.function(&name)
            }
            word => {
                self.fail(UnparsedKind::Unsupported, "a command contains a bracket");
                simple.words.extend(word);
                Node::Simple(simple)
            }
        }
    }

    /// Runs a parser on a range of the text, then continues at the old position.
    fn parse_range<T: Default>(
        &mut self,
        start: usize,
        end: usize,
        part: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let (at, outer_end) = (self.at, self.end);
        let pending = std::mem::take(&mut self.pending);
        (self.at, self.end) = (start, end);
        let result = self.nested(part);
        let unfinished = self.at < self.end || !self.pending.is_empty();
        self.end = outer_end;
        if self.stopped {
            self.at = self.end;
        } else {
            (self.at, self.pending) = (at, pending);
        }
        if unfinished && !self.stopped {
            self.fail(UnparsedKind::Unsupported, "it ends too early");
        }
        result
    }
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.as_bytes()[0].is_ascii_digit() && text.bytes().all(is_name_byte)
}
