//! Commands that hold other commands, and functions.

use super::super::Trouble;
use super::super::syntax::{Compound, Kind, List, Node, Piece, RawWord, Simple};
use super::{Parser, is_meta, is_name};

impl Parser<'_> {
    /// A compound command with the redirections behind it.
    pub(super) fn compound(&mut self, kind: Kind, lists: Vec<List>) -> Node {
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
        self.compound(Kind::Branches, lists)
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
        if self.starts("((") {
            return self.counting_loop();
        }
        let name = self.reserved().to_owned();
        if !is_name(&name) {
            self.fail(Trouble::Unclear, "a `for` without the name of a variable");
        }
        self.at += name.len().min(self.end - self.at);
        self.skip_lines();
        let mut words = Vec::new();
        if self.take_reserved("in") {
            loop {
                self.skip_blanks();
                if self.peek().is_none_or(is_meta) {
                    break;
                }
                words.push(self.word());
            }
        } else {
            self.doubt("a `for` over the script's own arguments");
        }
        self.skip_blanks();
        self.take(";");
        let body = self.body_of_loop();
        *self.parsed.assigned.entry(name.clone()).or_default() += 1;
        let mut node = self.compound(Kind::Loop, vec![body]);
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
        let node = self.compound(Kind::Loop, vec![body]);
        with_words(node, vec![word])
    }

    /// `(( … ))`
    pub(super) fn calculation(&mut self) -> Node {
        let word = self.double_parentheses();
        let node = self.compound(Kind::Group, Vec::new());
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
                if self.peek().is_none_or(is_meta) {
                    self.fail(Trouble::Unclear, "a pattern of `case` is missing");
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
                self.doubt("a branch of `case` goes on into the next");
            } else {
                self.take(";;");
            }
        }
        self.expect_reserved("esac");
        let node = self.compound(Kind::Branches, lists);
        with_words(node, words)
    }

    pub(super) fn function(&mut self, name: &RawWord) -> Node {
        let Some(name) = name.plain().map(str::to_owned) else {
            self.fail(Trouble::Unclear, "a function without a plain name");
            return Node::Simple(Simple::default());
        };
        self.skip_lines();
        // Not the shell's language, but how fork bombs are written.
        if self.peek() == Some(b'{') && self.reserved() != "{" {
            self.doubt("a function without blanks in its braces");
            self.at += 1;
            let list = self.list();
            self.expect_reserved("}");
            let body = Box::new(self.compound(Kind::Group, vec![list]));
            return Node::Function { name, body };
        }
        match self.deeper(Parser::command) {
            Some(body @ Node::Compound(_)) => Node::Function { name, body: Box::new(body) },
            Some(body) => {
                self.doubt("a function whose body is no block");
                Node::Function { name, body: Box::new(body) }
            }
            None => {
                self.fail(Trouble::Broken, "a function without a body");
                Node::Simple(Simple::default())
            }
        }
    }

    /// `[[ … ]]`, as a command whose arguments are what stands in it.
    pub(super) fn double_bracket(&mut self) -> Node {
        self.parsed.marks.push(self.at);
        let mut words = vec![self.word()];
        loop {
            self.skip_lines();
            if self.peek().is_none() {
                self.fail(Trouble::Broken, "`]]` is missing");
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
                None if self.peek().is_some_and(is_meta) => {
                    self.fail(Trouble::Unclear, "a test that is not understood");
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

/// A compound command with the words that it looks at.
fn with_words(mut node: Node, words: Vec<RawWord>) -> Node {
    if let Node::Compound(compound) = &mut node {
        compound.words = words;
    }
    node
}
