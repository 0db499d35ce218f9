//! A strict parser for the part of the shell's language that we claim to understand.
//!
//! It is meant to be small enough to be checked by reading. What it does not know it does not guess:
//! it notes a trouble and stops, and what it has read so far is still looked at for dangers.

mod assignments;
mod blocks;
mod expansions;
mod redirects;
mod words;

use std::collections::{HashMap, HashSet};

use self::redirects::Pending;
use super::syntax::{Entry, Kind, List, Node, Piece, Simple};
use super::{MAX_COMMANDS, MAX_DEPTH, Trouble, WhyNot};

/// A script, as far as it was understood.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) list: List,
    /// The bodies of here-documents.
    pub(super) here: Vec<Vec<Piece>>,
    /// What could not be understood.
    pub(super) trouble: Option<WhyNot>,
    /// Where commands, redirections and substitutions begin: what a second parser must see, too.
    pub(super) marks: Vec<usize>,
    /// How many times each variable is given a value.
    pub(super) assigned: HashMap<String, usize>,
    /// Names that commands may give a value to by other means (`read x`, `printf -v x`).
    pub(super) mentioned: HashSet<String>,
    /// Variables that expansions give a value to (`${x:=…}`).
    pub(super) defaulted: Vec<String>,
    /// Whether variables are also set in ways that cannot be told from the text.
    pub(super) sets_unseen: bool,
}

/// Reads a script.
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
        parser.fail(Trouble::Broken, "it contains a NUL character");
    }
    let list = parser.list();
    if parser.at < parser.end {
        parser.fail(Trouble::Unclear, "a bracket or a word such as `done` stands alone");
    }
    if !parser.pending.is_empty() {
        // Bash warns, and takes what there is.
        parser.fail(Trouble::Unclear, "a here-document does not end");
    }
    parser.parsed.list = list;
    parser.parsed
}

/// Once in trouble, it stands at the end of the text: every loop ends by itself, and what was read is
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

/// Words that end a list where a command could begin.
const ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Parser<'_> {
    fn fail(&mut self, trouble: Trouble, what: &str) {
        // Once stopped it stands at the end, so that every quote and bracket around looks unclosed.
        if !self.stopped {
            self.note(trouble, what);
        }
        self.at = self.end;
        self.stopped = true;
        self.pending.clear();
    }

    /// Notes what is not understood, and goes on.
    fn doubt(&mut self, what: &str) {
        self.note(Trouble::Unclear, what);
    }

    /// The worst trouble counts, and the first of its kind.
    fn note(&mut self, trouble: Trouble, what: &str) {
        if self.parsed.trouble.as_ref().is_none_or(|why| why.trouble < trouble) {
            self.parsed.trouble = Some(WhyNot { trouble, what: what.to_owned() });
        }
    }

    fn peek(&self) -> Option<u8> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<u8> {
        self.bytes[..self.end].get(self.at + by).copied()
    }

    fn starts(&self, with: &str) -> bool {
        self.bytes[self.at..self.end].starts_with(with.as_bytes())
    }

    fn take(&mut self, with: &str) -> bool {
        let found = self.starts(with);
        if found {
            self.at += with.len();
        }
        found
    }

    /// Runs a part one level deeper, unless that is too deep.
    fn deeper<T: Default>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_DEPTH {
            self.fail(Trouble::Limit, &format!("it is nested more than {MAX_DEPTH} deep"));
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
                Some(b'\\') if self.ahead(1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Blanks, comments and ends of lines, with the here-documents that begin there.
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
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    fn newline(&mut self) {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            self.here_document(&pending);
        }
    }

    /// The letters up to the next blank or operator: a reserved word is one without any quoting.
    fn reserved(&self) -> &str {
        let rest = &self.bytes[self.at..self.end];
        let length = rest.iter().position(|byte| is_meta(*byte)).unwrap_or(rest.len());
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
            self.fail(Trouble::Unclear, &format!("`{word}` is missing"));
        }
    }

    fn list(&mut self) -> List {
        self.deeper(|parser| {
            let mut list = List::default();
            let mut depends = false;
            loop {
                parser.skip_lines();
                let ends = matches!(parser.peek(), None | Some(b')'))
                    || parser.starts(";;")
                    || parser.starts(";&")
                    || ENDS.contains(&parser.reserved());
                if ends {
                    if depends {
                        parser.fail(Trouble::Unclear, "nothing stands behind `&&` or `||`");
                    }
                    return list;
                }
                let pipeline = parser.pipeline();
                parser.skip_blanks();
                let joined = parser.take("&&") || parser.take("||");
                let background = !joined && parser.take("&");
                list.0.push(Entry { depends, pipeline, background });
                depends = joined;
                if joined || background {
                    continue;
                }
                match parser.peek() {
                    Some(b';') if !parser.starts(";;") && !parser.starts(";&") => parser.at += 1,
                    Some(b'\n' | b'#' | b')' | b';') | None => {}
                    _ => parser.fail(Trouble::Unclear, "a command does not end as one does"),
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
            let goes_on = self.peek() == Some(b'|') && self.ahead(1) != Some(b'|');
            if !goes_on {
                return pipeline;
            }
            self.at += 1;
            self.take("&");
        }
    }

    fn command(&mut self) -> Option<Node> {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            self.fail(Trouble::Limit, &format!("it has more than {MAX_COMMANDS} commands"));
        }
        self.peek()?;
        if self.starts("((") {
            return Some(self.calculation());
        }
        if self.take("(") {
            let list = self.list();
            self.close(")");
            return Some(self.compound(Kind::Subshell, vec![list]));
        }
        let node = match self.reserved() {
            "{" => {
                self.at += 1;
                let list = self.list();
                self.expect_reserved("}");
                self.compound(Kind::Group, vec![list])
            }
            "if" => self.branches_of_if(),
            "while" | "until" => {
                self.at += "while".len();
                let condition = self.list();
                let body = self.body_of_loop();
                self.compound(Kind::Loop, vec![condition, body])
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
                let what = format!("`{word}` is not understood");
                self.fail(Trouble::Unclear, &what);
                return None;
            }
            word if ENDS.contains(&word) => {
                let what = format!("`{word}` stands alone");
                self.fail(Trouble::Unclear, &what);
                return None;
            }
            _ => return self.simple(),
        };
        Some(node)
    }

    fn close(&mut self, with: &str) {
        self.skip_lines();
        if !self.take(with) {
            self.fail(Trouble::Broken, &format!("`{with}` is missing"));
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
                Some(b'(') => return Some(self.function_or_trouble(simple)),
                Some(_) => {}
            }
            if simple.words.is_empty() && self.assignment(&mut simple.assignments) {
                continue;
            }
            if simple.words.is_empty() {
                self.parsed.marks.push(self.at);
            }
            simple.words.push(self.word());
        }
        let nothing =
            simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty();
        if nothing {
            self.fail(Trouble::Unclear, "a command is missing");
            return None;
        }
        self.note_what_it_sets(&simple);
        Some(Node::Simple(simple))
    }

    fn function_or_trouble(&mut self, mut simple: Simple) -> Node {
        let only_a_name =
            simple.words.len() == 1 && simple.assignments.is_empty() && simple.redirects.is_empty();
        self.at += 1;
        self.skip_blanks();
        match simple.words.pop() {
            Some(name) if only_a_name && self.take(")") => {
                self.parsed.marks.pop();
                self.function(&name)
            }
            word => {
                self.fail(Trouble::Unclear, "a bracket inside a command");
                simple.words.extend(word);
                Node::Simple(simple)
            }
        }
    }

    /// Reads a part of the text by itself, and goes on where it was.
    fn within<T: Default>(
        &mut self,
        start: usize,
        end: usize,
        part: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let (at, outer_end) = (self.at, self.end);
        let pending = std::mem::take(&mut self.pending);
        (self.at, self.end) = (start, end);
        let result = self.deeper(part);
        let unfinished = self.at < self.end || !self.pending.is_empty();
        self.end = outer_end;
        if self.stopped {
            self.at = self.end;
        } else {
            (self.at, self.pending) = (at, pending);
        }
        if unfinished && !self.stopped {
            self.fail(Trouble::Unclear, "something ends before its end");
        }
        result
    }
}

/// What ends a word.
fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.as_bytes()[0].is_ascii_digit() && text.bytes().all(is_name_byte)
}
