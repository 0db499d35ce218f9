//! Cross-checks our parser with tree-sitter, an independent parser, at run time.
//!
//! A command that is hidden from one parser must be hidden from the other in the same way. Both must
//! agree on the offset of every command, redirection and substitution; otherwise the script is unparsed.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

/// The limit of parsing steps. An ordinary script of the maximum length needs a hundredth of them.
const MAX_STEPS: usize = 200_000;

thread_local! {
    /// The parser of a thread. It keeps its memory between scripts, a tenth of the work on a short command, but nothing
    /// of their text.
    static PARSER: RefCell<Option<Parser>> = RefCell::new(new_parser());
}

fn new_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    Some(parser)
}

/// The syntax tree of a script. `None` if it has a syntax error.
pub(crate) fn parse_tree(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|parser| parse_with(parser.as_mut()?, text, MAX_STEPS))
}

fn parse_with(parser: &mut Parser, text: &str, max_steps: usize) -> Option<Tree> {
    // It would continue with an earlier script that was stopped at the limit.
    parser.reset();
    let mut steps = 0;
    let mut count = |_: &ParseState| {
        steps += 1;
        if steps > max_steps { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
    let grammar = &*GRAMMAR;
    let mut offsets = Vec::new();
    let mut cursor = tree.walk();
    // Visits every node once without recursion: a tree can be as deep as its text is long.
    'nodes: loop {
        offsets.extend(grammar.command_offset(cursor.node()));
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

/// Where the offset of a node is that both parsers must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It has none.
    Nowhere,
    /// At its begin.
    Start,
    /// At the begin of the name of a command.
    Name,
    /// At the begin of the target of a redirection.
    Destination,
    /// At the begin of the first part that is not an operator.
    FirstPart,
}

/// The kinds of nodes and their fields as numbers: comparing the names of every node takes longer than the walk.
struct Grammar {
    /// The place of each kind, by the number of the kind.
    places: Vec<Place>,
    name: u16,
    destination: u16,
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_bash::LANGUAGE);
    let kinds = 0..u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    let place = |kind| match language.node_kind_for_id(kind) {
        Some(name) if language.node_kind_is_named(kind) => place_of(name),
        _ => Place::Nowhere,
    };
    let field = |name| language.field_id_for_name(name).map_or(0, u16::from);
    Grammar {
        places: kinds.map(place).collect(),
        name: field("name"),
        destination: field("destination"),
    }
});

/// The place of a kind of named nodes.
fn place_of(kind: &str) -> Place {
    match kind {
        "command" => Place::Name,
        "declaration_command"
        | "unset_command"
        | "test_command"
        | "command_substitution"
        | "process_substitution" => Place::Start,
        "file_redirect" => Place::Destination,
        "herestring_redirect" => Place::FirstPart,
        _ => Place::Nowhere,
    }
}

impl Grammar {
    /// The offset of a node that both parsers must find; `None` for other nodes.
    fn command_offset(&self, node: Node<'_>) -> Option<usize> {
        let part = match self.places.get(usize::from(node.kind_id()))? {
            Place::Nowhere => return None,
            Place::Start => Some(node),
            Place::Name => node.child_by_field_id(self.name),
            Place::Destination => node.child_by_field_id(self.destination),
            Place::FirstPart => node.named_child(0),
        };
        part.map(|part| part.start_byte())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of a node by the names of its kind and its fields.
    fn offset_by_names(node: Node<'_>) -> Option<usize> {
        let part = match place_of(node.kind()) {
            _ if !node.is_named() => None,
            Place::Nowhere => None,
            Place::Start => Some(node),
            Place::Name => node.child_by_field_name("name"),
            Place::Destination => node.child_by_field_name("destination"),
            Place::FirstPart => node.named_child(0),
        };
        part.map(|part| part.start_byte())
    }

    /// The hostile and ordinary scripts of the stress tests.
    fn scripts() -> Vec<String> {
        let corpus = [
            include_str!("../../corpus/dangerous.jsonl"),
            include_str!("../../corpus/hostile.jsonl"),
            include_str!("../../corpus/ordinary.jsonl"),
            include_str!("../../corpus/reads.jsonl"),
        ];
        let lines = corpus.iter().flat_map(|file| file.lines());
        let scripts = lines.filter(|line| line.starts_with('"'));
        scripts.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn numbers_find_the_same_nodes_as_names() {
        let mut found = 0;
        for script in scripts() {
            let Some(tree) = parse_tree(&script) else { continue };
            let mut nodes = vec![tree.root_node()];
            while let Some(node) = nodes.pop() {
                let offset = GRAMMAR.command_offset(node);
                assert_eq!(offset, offset_by_names(node), "{node:?} in {script}");
                found += usize::from(offset.is_some());
                let children = 0..node.child_count();
                nodes.extend(children.filter_map(|number| node.child(number)));
            }
        }
        assert!(found > 500, "only {found} offsets");
    }

    #[test]
    fn a_parser_forgets_earlier_scripts() {
        let shown = |tree: Option<Tree>| tree.map(|tree| tree.root_node().to_sexp());
        let mut reused = new_parser().unwrap();
        let long = "cat <<'END'\nls $(rm x)\nEND\n".repeat(100);
        for (number, script) in scripts().iter().enumerate() {
            match number % 3 {
                0 => assert!(parse_with(&mut reused, &long, number % 4).is_none(), "it stops"),
                1 => drop(parse_with(&mut reused, "echo 'not closed <<END $(", MAX_STEPS)),
                _ => {}
            }
            let tree = parse_with(&mut reused, script, MAX_STEPS);
            let fresh = parse_with(&mut new_parser().unwrap(), script, MAX_STEPS);
            assert_eq!(shown(tree), shown(fresh), "{script}");
        }
    }
}
