//! A second opinion: what another parser, made by others for another purpose, sees in a script.
//!
//! Whoever hides a command from one parser has to hide it from the other in the same way. The two must
//! agree on where every command, redirection and substitution begins; else nothing is called safe.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// Steps of parsing after which it is given up: an ordinary script of the length that we take needs a
/// hundredth of them.
const MAX_STEPS: usize = 200_000;

/// Where commands, redirections and substitutions begin, in order; nothing, if the script is not in the
/// parser's language.
pub(super) fn marks(text: &str) -> Option<Vec<usize>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut steps = 0;
    let mut count = |_: &ParseState| {
        steps += 1;
        if steps > MAX_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    let bytes = text.as_bytes();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut read, None, Some(options))?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut marks = Vec::new();
    let mut cursor = tree.walk();
    // Every node once, without recursion: a tree may be as deep as its text is long.
    'nodes: loop {
        marks.extend(mark(cursor.node()));
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'nodes;
            }
        }
    }
    marks.sort_unstable();
    Some(marks)
}

/// Where something begins that both parsers must see.
fn mark(node: Node<'_>) -> Option<usize> {
    if !node.is_named() {
        return None;
    }
    match node.kind() {
        "command" => node.child_by_field_name("name").map(|name| name.start_byte()),
        "declaration_command"
        | "unset_command"
        | "test_command"
        | "command_substitution"
        | "process_substitution" => Some(node.start_byte()),
        "file_redirect" => node.child_by_field_name("destination").map(|node| node.start_byte()),
        "herestring_redirect" => node.named_child(0).map(|node| node.start_byte()),
        _ => None,
    }
}
