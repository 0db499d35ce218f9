//! Python.

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

/// Variables of modules and attributes of classes.
fn assignment(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.in_callable || at.parent != "expression_statement" {
        return;
    }
    let (word, class) = match at.outer {
        Some(_) => ("attribute", Class::Member),
        None => ("variable", Class::Value),
    };
    let Some(left) = at.field("left") else { return };
    match left.kind() {
        "identifier" => found.push(at.found(word, class, left)),
        "pattern_list" => {
            let mut cursor = left.walk();
            let names = left.named_children(&mut cursor).take(super::MAX_CHILDREN);
            let names = names.filter(|name| name.kind() == "identifier");
            found.extend(names.map(|name| at.found(word, class, name)));
        }
        _ => {}
    }
}
