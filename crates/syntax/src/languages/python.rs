//! Python.

use tree_sitter::Node;

use super::{At, Found, Row, Rule};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("function_definition", Rule::Named("def", Class::Callable)),
    ("class_definition", Rule::Named("class", Class::Type)),
    ("type_alias_statement", Rule::By(alias)),
    ("assignment", Rule::By(assignment)),
];

fn alias(at: &At<'_, '_>, found: &mut Vec<Found>) {
    found.extend(at.field("left").map(|left| at.found("type", Class::Type, left)));
}

/// More names are not written by hand.
const MAX_CHAINED: usize = 20;

/// Variables of modules and attributes of classes.
fn assignment(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.in_callable || at.parent != "expression_statement" {
        return;
    }
    // In `a = b = 1`, the second assignment is the value of the first.
    let mut one = Some(at.node);
    for _ in 0..MAX_CHAINED {
        let Some(assignment) = one.filter(|node| node.kind() == "assignment") else { return };
        found.extend(
            assignment.child_by_field_name("left").map_or(Vec::new(), |left| targets(at, left)),
        );
        one = assignment.child_by_field_name("right");
    }
}

/// The names on the left side of an assignment.
fn targets(at: &At<'_, '_>, left: Node<'_>) -> Vec<Found> {
    let (word, class) = match at.outer {
        Some(_) => ("attribute", Class::Member),
        None => ("variable", Class::Value),
    };
    match left.kind() {
        "identifier" => vec![at.found(word, class, left)],
        "pattern_list" => {
            let mut cursor = left.walk();
            let names = left.named_children(&mut cursor).take(super::MAX_CHILDREN);
            let names = names.filter(|name| name.kind() == "identifier");
            names.map(|name| at.found(word, class, name)).collect()
        }
        _ => Vec::new(),
    }
}
