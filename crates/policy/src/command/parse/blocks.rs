//! Compound commands and functions.

use super::super::UnparsedKind;
use super::super::syntax::{Compound, CompoundKind, List, Node, Piece, RawWord, Simple};
use super::{Parser, ends_word, is_name};

impl Parser<'_> {
    /// Parses the redirections after a compound command and builds its node.
    pub(super) fn compound(&mut self, kind: CompoundKind, lists: Vec<List>) -> Node {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            if !self.redirect(&mut redirects) {
                let (variable, words) = (None, Vec::new());
                return Node::Compound(Compound { kind, variable, words, lists, redirects });
            }
        }
    }

    pub(super) fn branches_of_if(&mut self) -> Node {
        let mut lists = Vec::new();
        self.at += "if".len();
        loop {
            lists.push(self.list());
            self.expect_reserved("then");
            lists.push(self.list());
            if !self.take_reserved("elif") {
                break;
            }
        }
        if self.take_reserved("else") {
            lists.push(self.list());
        }
        self.expect_reserved("fi");
        self.compound(CompoundKind::Branches, lists)
    }

    pub(super) fn body_of_loop(&mut self) -> List {
        self.expect_reserved("do");
        let body = self.list();
        self.expect_reserved("done");
        body
    }

    pub(super) fn for_loop(&mut self) -> Node {
        self.at += "for".len();
        self.skip_blanks();
        if self.starts_with("((") {
            return self.counting_loop();
        }
        let name = self.reserved().to_owned();
        if !is_name(&name) {
            self.fail(UnparsedKind::Unsupported, "a `for` has no variable name");
        }
        self.at += name.len().min(self.end - self.at);
        self.skip_lines();
        let mut words = Vec::new();
        if self.take_reserved("in") {
            loop {
                self.skip_blanks();
                if self.peek().is_none_or(ends_word) {
                    break;
                }
                words.push(self.word());
            }
        } else {
            self.note_unsupported("a `for` iterates over the script's arguments");
        }
        self.skip_blanks();
        self.take(";");
        let body = self.body_of_loop();
        *self.parsed.assignment_counts.entry(name.clone()).or_default() += 1;
        let mut node = self.compound(CompoundKind::Loop, vec![body]);
        if let Node::Compound(compound) = &mut node {
            compound.variable = Some(name);
            compound.words = words;
        }
        node
    }

    /// `for (( … ))`
    fn counting_loop(&mut self) -> Node {
        let word = self.double_parentheses();
        self.skip_blanks();
        self.take(";");
        let body = self.body_of_loop();
        let node = self.compound(CompoundKind::Loop, vec![body]);
        with_words(node, vec![word])
    }

    /// `(( … ))`
    pub(super) fn calculation(&mut self) -> Node {
        let word = self.double_parentheses();
        let node = self.compound(CompoundKind::Group, Vec::new());
        with_words(node, vec![word])
    }

    pub(super) fn case(&mut self) -> Node {
        self.at += "case".len();
        self.skip_blanks();
        let mut words = vec![self.word()];
        self.expect_reserved("in");
        let mut lists = Vec::new();
        loop {
            self.skip_lines();
            if self.at >= self.end || self.reserved() == "esac" {
                break;
            }
            self.take("(");
            loop {
                self.skip_blanks();
                if self.peek().is_none_or(ends_word) {
                    self.fail(UnparsedKind::Unsupported, "a pattern of `case` is missing");
                }
                words.push(self.word());
                self.skip_blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.close(")");
            lists.push(self.list());
            self.skip_lines();
            if self.take(";;&") || self.take(";&") {
                self.note_unsupported("a branch of `case` falls through to the next");
            } else {
                self.take(";;");
            }
        }
        self.expect_reserved("esac");
        let node = self.compound(CompoundKind::Branches, lists);
        with_words(node, words)
    }

    pub(super) fn function(&mut self, name: &RawWord) -> Node {
        let Some(name) = name.plain().map(str::to_owned) else {
            self.fail(UnparsedKind::Unsupported, "a function has no plain name");
            return Node::Simple(Simple::default());
        };
        self.skip_lines();
        // Not valid shell syntax, but a common way to write fork bombs.
        if self.peek() == Some(b'{') && self.reserved() != "{" {
            self.note_unsupported("a function has no whitespace inside its braces");
            self.at += 1;
            let list = self.list();
            self.expect_reserved("}");
            let body = Box::new(self.compound(CompoundKind::Group, vec![list]));
            return Node::Function { name, body };
        }
        match self.nested(Parser::command) {
            Some(body @ Node::Compound(_)) => Node::Function { name, body: Box::new(body) },
            Some(body) => {
                self.note_unsupported("the body of a function is not a block");
                Node::Function { name, body: Box::new(body) }
            }
            None => {
                self.fail(UnparsedKind::SyntaxError, "a function has no body");
                Node::Simple(Simple::default())
            }
        }
    }

    /// Parses `[[ … ]]` as a command whose arguments are the words inside.
    pub(super) fn double_bracket(&mut self) -> Node {
        self.parsed.offsets.push(self.at);
        let mut words = vec![self.word()];
        loop {
            self.skip_lines();
            if self.peek().is_none() {
                self.fail(UnparsedKind::SyntaxError, "`]]` is missing");
                break;
            }
            if self.reserved() == "]]" {
                words.push(self.word());
                break;
            }
            let start = self.at;
            let operator =
                ["&&", "||", "(", ")", "<", ">"].into_iter().find(|operator| self.take(operator));
            words.push(match operator {
                Some(text) => {
                    let pieces = vec![Piece::Literal { text: text.to_owned(), quoted: true }];
                    RawWord { start, end: self.at, pieces }
                }
                None if self.peek().is_some_and(ends_word) => {
                    self.fail(UnparsedKind::Unsupported, "a `[[ ]]` test is not supported");
                    break;
                }
                None => self.word(),
            });
        }
        let mut redirects = Vec::new();
        self.skip_blanks();
        while self.redirect(&mut redirects) {
            self.skip_blanks();
        }
        Node::Simple(Simple { words, redirects, ..Simple::default() })
    }
}

fn with_words(mut node: Node, words: Vec<RawWord>) -> Node {
    if let Node::Compound(compound) = &mut node {
        compound.words = words;
    }
    node
}
