//! Cross-checks our parser with tree-sitter, an independent parser, at run time.
//!
//! A command that is hidden from one parser must be hidden from the other in the same way. Both must
//! agree on the offset of every command, redirection and substitution; otherwise the script is unparsed.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// The limit of parsing steps. An ordinary script of the maximum length needs a hundredth of them.
const MAX_STEPS: usize = 200_000;

/// The syntax tree of a script. `None` if it has a syntax error.
pub(crate) fn parse_tree(text: &str) -> Option<Tree> {
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
    (!tree.root_node().has_error()).then_some(tree)
}

/// The sorted offsets of commands, redirections and substitutions. `None` if the script has a syntax error.
pub(super) fn command_offsets(text: &str) -> Option<Vec<usize>> {
    let tree = parse_tree(text)?;
    let mut offsets = Vec::new();
    let mut cursor = tree.walk();
    // Visits every node once without recursion: a tree can be as deep as its text is long.
    'nodes: loop {
        offsets.extend(command_offset(cursor.node()));
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                break 'nodes;
            }
        }
    }
    offsets.sort_unstable();
    Some(offsets)
}

/// The offset of a node that both parsers must find; `None` for other nodes.
fn command_offset(node: Node<'_>) -> Option<usize> {
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
