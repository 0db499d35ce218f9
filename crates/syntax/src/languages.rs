//! The nodes that define something, by language.

pub(crate) mod c_family;
pub(crate) mod csharp;
pub(crate) mod go;
pub(crate) mod java;
pub(crate) mod javascript;
pub(crate) mod kotlin;
pub(crate) mod php;
pub(crate) mod python;
pub(crate) mod ruby;
pub(crate) mod rust;
pub(crate) mod swift;

use tree_sitter::Node;

use crate::definition::Class;

/// A row of a table: a kind of node, and how it defines something.
pub(crate) type Row = (&'static str, Rule);

/// How a node defines something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// The field `name` has the name.
    Named(&'static str, Class),
    /// The function finds the names.
    By(fn(&At<'_, '_>, &mut Vec<Found>)),
    /// The same for a function that may have no name: variables inside it are local.
    Function(fn(&At<'_, '_>, &mut Vec<Found>)),
}

/// A node in its surroundings.
#[derive(Debug)]
pub(crate) struct At<'t, 'a> {
    pub(crate) node: Node<'t>,
    pub(crate) text: &'a [u8],
    /// The kind of the parent node.
    pub(crate) parent: &'t str,
    /// Whether a function is around the node.
    pub(crate) in_callable: bool,
    /// The class of the definition around the node.
    pub(crate) outer: Option<Class>,
}

/// A definition that a rule found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) word: &'static str,
    pub(crate) class: Class,
    pub(crate) name: String,
    pub(crate) qualifier: String,
    pub(crate) header: Option<String>,
    pub(crate) name_row: usize,
}

/// The rules of a grammar, by the id of the node's kind.
#[derive(Debug)]
pub(crate) struct Rules {
    by_kind: Vec<Option<Rule>>,
}

impl Rules {
    pub(crate) fn new(grammar: &tree_sitter::Language, table: &[Row]) -> Rules {
        let mut by_kind = vec![None; grammar.node_kind_count()];
        // A kind can have several ids.
        for (id, rule) in by_kind.iter_mut().enumerate() {
            let id = u16::try_from(id).unwrap_or(0);
            let name = grammar.node_kind_for_id(id).filter(|_| grammar.node_kind_is_named(id));
            *rule = table.iter().find(|(kind, _)| Some(*kind) == name).map(|(_, rule)| *rule);
        }
        Rules { by_kind }
    }

    pub(crate) fn of(&self, node: Node<'_>) -> Option<Rule> {
        self.by_kind.get(usize::from(node.kind_id())).copied().flatten()
    }
}

/// For a function without a name.
pub(crate) fn nameless(_: &At<'_, '_>, _: &mut Vec<Found>) {}

/// Bash has functions only.
pub(crate) const BASH: &[Row] =
    &[("function_definition", Rule::Named("function", Class::Callable))];

impl<'t> At<'t, '_> {
    pub(crate) fn field(&self, name: &str) -> Option<Node<'t>> {
        self.node.child_by_field_name(name)
    }

    /// The text of a node, without line breaks.
    pub(crate) fn text(&self, node: Node<'_>) -> String {
        one_line(self.text.get(node.byte_range()).unwrap_or_default())
    }

    /// A definition with the name of a node.
    pub(crate) fn found(&self, word: &'static str, class: Class, name: Node<'_>) -> Found {
        Found {
            word,
            class,
            name: unquoted(name.kind(), self.text(name)),
            qualifier: String::new(),
            header: None,
            name_row: name.start_position().row,
        }
    }

    /// A definition with the name in the field `name`.
    pub(crate) fn named(&self, word: &'static str, class: Class) -> Option<Found> {
        self.field("name").map(|name| self.found(word, class, name))
    }

    /// The first child of a kind.
    pub(crate) fn child(&self, kind: &str) -> Option<Node<'t>> {
        child_of(self.node, kind)
    }
}

/// A name that is written as a string: `"a-b"() {}`.
fn unquoted(kind: &str, text: String) -> String {
    match kind {
        "string" => text.trim_matches(['"', '\'']).to_owned(),
        _ => text,
    }
}

/// The first child of a kind.
pub(crate) fn child_of<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).take(MAX_CHILDREN).find(|child| child.kind() == kind)
}

/// Children that are examined for a part of a header. A body with many children is not such a part.
pub(crate) const MAX_CHILDREN: usize = 100;

/// More is not a name or a header.
const MAX_CHARS: usize = 160;

/// A text in one line, shortened.
pub(crate) fn one_line(text: &[u8]) -> String {
    let text = text.get(..text.len().min(MAX_CHARS * 8)).unwrap_or(text);
    let text = String::from_utf8_lossy(text);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
