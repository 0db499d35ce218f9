//! The parts of a script that its steps show, and the first part that they would hide.

use std::ops::Range;

use tree_sitter::{Node, Tree};

/// Ends of constructs whose begin is shown. They contain no words.
const ENDS: [&str; 8] = [")", "}", ";", "&", "fi", "done", "\n", ";\n"];

/// Ranges of a script.
#[derive(Default)]
pub(crate) struct ShownParts(Vec<Range<usize>>);

impl ShownParts {
    pub(crate) fn add(&mut self, part: Range<usize>) {
        self.0.push(part);
    }

    /// The line of the first word or operator that is in no part, and is neither an end nor a comment.
    pub(crate) fn first_hidden_line(mut self, text: &str, tree: &Tree) -> Option<usize> {
        self.add_ends_and_comments(text, tree);
        self.0.sort_by_key(|part| part.start);
        let mut shown_to = 0;
        let end = text.len()..text.len();
        for part in self.0.iter().chain([&end]) {
            let between = text.as_bytes().get(shown_to..part.start).unwrap_or_default();
            if let Some(at) = first_not_blank(between) {
                let before = text.as_bytes().iter().take(shown_to + at);
                return Some(1 + before.filter(|byte| **byte == b'\n').count());
            }
            shown_to = shown_to.max(part.end);
        }
        None
    }

    /// Visits every node without recursion: a tree can be as deep as its text is long.
    fn add_ends_and_comments(&mut self, text: &str, tree: &Tree) {
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            if is_end(node) || is_comment(text, node) {
                self.add(node.byte_range());
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }
}

fn is_end(node: Node<'_>) -> bool {
    !node.is_named() && ENDS.contains(&node.kind())
}

/// Whether a node is a comment for the shell too: `#` inside a word begins none.
fn is_comment(text: &str, node: Node<'_>) -> bool {
    let before = text.get(..node.start_byte()).unwrap_or_default();
    let begins_word = before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '&', '|', '(']);
    node.kind() == "comment" && begins_word && !before.ends_with("\\\n")
}

/// The place of the first byte that is part of a word or an operator. Only these bytes are blanks of the shell;
/// other white space is part of words.
fn first_not_blank(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        at += match rest {
            [b' ' | b'\t' | b'\n', ..] => 1,
            [b'\\', b'\n', ..] => 2,
            _ => return Some(at),
        };
    }
    None
}
