//! Finds the definitions of a parsed text in one walk over its tree.

use tree_sitter::{Node, TreeCursor};

use crate::definition::{Class, Definition, Outline};
use crate::languages::{At, Found, Rule, Rules, one_line};
use crate::parse::Syntax;

/// Files with more definitions are generated.
const MAX_DEFINITIONS: usize = 20_000;

/// Nodes between two questions whether the time is over.
const NODES_PER_CHECK: usize = 10_000;

/// Nodes around a definition that belong to it.
const WRAPPERS: &[&str] = &["decorated_definition", "export_statement", "template_declaration"];

/// Nodes around definitions that belong to one that begins on their first line.
const GROUPS: &[&str] = &[
    "ambient_declaration",
    "const_declaration",
    "expression_statement",
    "lexical_declaration",
    "type_declaration",
    "var_declaration",
    "variable_declaration",
];

impl Syntax<'_> {
    /// The definitions of the text.
    pub fn outline(&self) -> Outline {
        self.outline_until(&|| false)
    }

    /// The definitions of the text, as far as they are found in time.
    pub fn outline_until(&self, is_over: &dyn Fn() -> bool) -> Outline {
        let has_errors = self.tree.root_node().has_error();
        let invalid_lines = if has_errors { self.invalid_lines() } else { Vec::new() };
        let has_macros = self.language.has_macros();
        let mut outline = Outline { has_errors, invalid_lines, has_macros, ..Outline::default() };
        let Some(rules) = self.language.rules() else { return outline };
        let mut walk = Walk { syntax: self, rules, levels: Vec::new(), found: Vec::new() };
        let mut cursor = self.tree.walk();
        for visited in 1_usize.. {
            let is_check = visited.is_multiple_of(NODES_PER_CHECK);
            if outline.definitions.len() >= MAX_DEFINITIONS || is_check && is_over() {
                outline.is_cut = true;
                break;
            }
            let level = walk.enter(cursor.node(), &mut outline.definitions);
            if cursor.goto_first_child() {
                walk.levels.push(level);
            } else if !walk.advance(&mut cursor) {
                break;
            }
        }
        outline
    }
}

/// An open node of the walk.
struct Level<'s> {
    kind: &'s str,
    first_row: usize,
    last_row: usize,
    /// First row of the comments before the node.
    doc_row: usize,
    /// The innermost definition around the children.
    definition: Option<usize>,
    in_callable: bool,
    comments: Comments,
}

/// The comments and attributes directly before the next child.
#[derive(Default)]
struct Comments {
    first_row: Option<usize>,
    /// Last row of the previous child.
    last_row: Option<usize>,
}

impl Comments {
    /// The first row of the comments that end directly before a row.
    fn before(&self, row: usize) -> usize {
        let is_adjacent = self.last_row.is_some_and(|last| last + 1 >= row);
        self.first_row.filter(|_| is_adjacent).unwrap_or(row)
    }

    /// Goes past a child.
    fn pass(&mut self, node: Node<'_>, is_comment: bool) {
        let row = node.start_position().row;
        let begins_line = self.last_row.is_none_or(|last| last < row);
        let is_adjacent = self.last_row.is_some_and(|last| last + 1 >= row);
        self.first_row = match (is_comment, self.first_row) {
            (false, _) => None,
            (true, Some(first)) if is_adjacent => Some(first),
            (true, _) => begins_line.then_some(row),
        };
        self.last_row = Some(last_row(node));
    }
}

struct Walk<'s, 'a> {
    syntax: &'s Syntax<'a>,
    rules: &'static Rules,
    levels: Vec<Level<'s>>,
    /// The definitions of one node.
    found: Vec<Found>,
}

impl<'s> Walk<'s, '_> {
    /// Adds the definitions of a node.
    fn enter(&mut self, node: Node<'s>, all: &mut Vec<Definition>) -> Level<'s> {
        let first_row = node.start_position().row;
        let kind = node.kind();
        let (doc_row, mut definition, mut in_callable) = match self.levels.last_mut() {
            Some(parent) => {
                // The comments of a node are also those of a first child that begins with it.
                let begins_parent = parent.comments.last_row.is_none();
                let doc_row = if begins_parent && parent.first_row == first_row {
                    parent.doc_row
                } else {
                    parent.comments.before(first_row)
                };
                parent.comments.pass(node, is_comment(kind));
                (doc_row, parent.definition, parent.in_callable)
            }
            None => (first_row, None, false),
        };
        let last_row = last_row(node);
        if let Some(rule) = self.rules.of(node) {
            let outer = definition;
            let outer_class = outer.and_then(|at| all.get(at)).map(|outer| outer.class);
            self.apply(rule, node, in_callable, outer_class);
            in_callable |= matches!(rule, Rule::Function(_));
            let (doc_row, first_row, last_row) = self.extent(doc_row, first_row, last_row);
            let signature = self.signature(node);
            for one in self.found.drain(..).filter(|one| !one.name.is_empty()) {
                if one.class != Class::Member {
                    definition = Some(all.len());
                }
                in_callable = match one.class {
                    Class::Callable => true,
                    // Its constants and fields are not variables of the function around it.
                    Class::Type | Class::Block => false,
                    Class::Value | Class::Member | Class::Prototype => in_callable,
                };
                all.push(Definition {
                    name: one.name,
                    qualifier: one.qualifier,
                    word: one.word,
                    class: one.class,
                    header: one.header,
                    outer,
                    doc_line: doc_row as u64 + 1,
                    first_line: first_row as u64 + 1,
                    name_line: one.name_row as u64 + 1,
                    last_line: last_row as u64 + 1,
                    signature: signature.clone(),
                });
            }
        }
        let comments = Comments::default();
        Level { kind, first_row, last_row, doc_row, definition, in_callable, comments }
    }

    fn apply(&mut self, rule: Rule, node: Node<'_>, in_callable: bool, outer: Option<Class>) {
        let parent = self.levels.last().map_or("", |parent| parent.kind);
        let at = At { node, text: self.syntax.text, parent, in_callable, outer };
        match rule {
            Rule::Named(word, class) => self.found.extend(at.named(word, class)),
            Rule::By(find) | Rule::Function(find) => find(&at, &mut self.found),
        }
    }

    /// First row of the comments, first row and last row of a definition, with the nodes around it that belong to it.
    fn extent(&self, doc_row: usize, first_row: usize, last_row: usize) -> (usize, usize, usize) {
        let mut extent = (doc_row, first_row, last_row);
        for level in self.levels.iter().rev() {
            let is_group = GROUPS.contains(&level.kind) && level.first_row == first_row;
            if !is_group && !WRAPPERS.contains(&level.kind) {
                break;
            }
            extent = (level.doc_row, level.first_row.min(extent.1), level.last_row.max(extent.2));
        }
        extent
    }

    /// The text of a definition up to its body.
    fn signature(&self, node: Node<'_>) -> String {
        if self.found.is_empty() {
            return String::new();
        }
        let body = node.child_by_field_name("body").map(|body| body.start_byte());
        let end = body.unwrap_or(node.end_byte());
        let text = self.syntax.text.get(node.start_byte()..end).unwrap_or_default();
        // Without a body field, the first line.
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let text = if body.is_some() { one_line(text) } else { one_line(line) };
        text.trim_end_matches(['{', ':', ' ', '=']).to_owned()
    }

    /// Goes to the next node that is not below the current one. Returns false at the end.
    fn advance(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
            self.levels.pop();
        }
        true
    }
}

/// The last row with text of a node. Some nodes end after a line break.
fn last_row(node: Node<'_>) -> usize {
    let (start, end) = (node.start_position(), node.end_position());
    if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row }
}

/// Whether a node documents the next one.
fn is_comment(kind: &str) -> bool {
    matches!(
        kind,
        "comment"
            | "line_comment"
            | "block_comment"
            | "multiline_comment"
            | "attribute_item"
            | "decorator"
    )
}
