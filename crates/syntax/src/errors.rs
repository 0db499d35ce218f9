//! The syntax errors and brackets of a parsed text.

use tree_sitter::Node;

use crate::language::Language;
use crate::languages::one_line;
use crate::parse::Syntax;

/// Errors beyond these are consequences of the first ones.
const MAX_ERRORS: usize = 100;

/// A part of the text that is not valid, in rows from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) first_row: usize,
    pub(crate) last_row: usize,
    /// The missing token, if the parser names one.
    pub(crate) missing: Option<String>,
    /// The first line of the invalid text.
    pub(crate) text: String,
}

/// Opening brackets minus closing brackets, for `()`, `[]` and `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Brackets([i64; 3]);

const PAIRS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

impl Syntax<'_> {
    pub(crate) fn has_errors(&self) -> bool {
        self.tree.root_node().has_error()
    }

    /// The outermost invalid parts.
    pub(crate) fn invalid(&self) -> Vec<Invalid> {
        let mut all = Vec::new();
        let mut cursor = self.tree.walk();
        loop {
            let node = cursor.node();
            if node.is_error() || node.is_missing() {
                all.push(self.invalid_part(node));
            }
            let descend = node.has_error() && !node.is_error() && cursor.goto_first_child();
            if descend {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return all;
                }
            }
            if all.len() >= MAX_ERRORS {
                return all;
            }
        }
    }

    /// The first and last lines of the invalid parts, from 1.
    pub(crate) fn invalid_lines(&self) -> Vec<(u64, u64)> {
        let line = |row: usize| row as u64 + 1;
        let lines = |one: Invalid| (line(one.first_row), line(one.last_row));
        self.invalid().into_iter().map(lines).collect()
    }

    fn invalid_part(&self, node: Node<'_>) -> Invalid {
        let text = self.text.get(node.start_byte()..).unwrap_or_default();
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Invalid {
            first_row: node.start_position().row,
            last_row: node.end_position().row,
            missing: missing(node),
            text: one_line(line),
        }
    }

    /// The balance of brackets outside strings and comments. `None` if brackets need not be balanced.
    pub(crate) fn brackets(&self) -> Option<Brackets> {
        if self.language == Language::Bash {
            // `case` has `)` alone.
            return None;
        }
        let mut brackets = Brackets::default();
        let mut cursor = self.tree.walk();
        loop {
            let node = cursor.node();
            if !node.is_missing() && !node.is_named() {
                brackets.count(node.kind());
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Some(brackets);
                }
            }
        }
    }
}

/// What a node stands for that is missing in the text.
fn missing(node: Node<'_>) -> Option<String> {
    let kind = node.kind();
    if !node.is_missing() || kind.contains("_token") || kind.contains('\n') {
        return None;
    }
    Some(if node.is_named() { kind.replace('_', " ") } else { format!("`{kind}`") })
}

impl Brackets {
    /// Counts the brackets of a token: `{`, `${`, `\(`.
    fn count(&mut self, token: &str) {
        if token.len() > 3 {
            return;
        }
        for c in token.chars() {
            for (balance, (open, close)) in self.0.iter_mut().zip(PAIRS) {
                *balance += i64::from(c == open) - i64::from(c == close);
            }
        }
    }

    pub(crate) fn are_balanced(self) -> bool {
        self == Brackets::default()
    }

    /// The first kind of bracket that is not balanced, in words.
    pub(crate) fn words(self) -> Option<String> {
        let mut pairs = self.0.iter().zip(PAIRS);
        let (balance, (open, close)) = pairs.find(|(balance, _)| **balance != 0)?;
        let (has, lacks) = if *balance > 0 { (open, close) } else { (close, open) };
        Some(format!("`{has}` without `{lacks}`"))
    }
}
