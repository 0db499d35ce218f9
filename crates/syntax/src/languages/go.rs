//! Go.

use tree_sitter::Node;

use super::{At, Found, Row, Rule, child_of, nameless};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("function_declaration", Rule::Named("func", Class::Callable)),
    ("method_declaration", Rule::By(method)),
    ("type_spec", Rule::Named("type", Class::Type)),
    ("type_alias", Rule::Named("type", Class::Type)),
    ("method_elem", Rule::Named("func", Class::Prototype)),
    ("const_spec", Rule::By(constants)),
    ("var_spec", Rule::By(variables)),
    ("field_declaration", Rule::By(fields)),
    ("func_literal", Rule::Function(nameless)),
];

/// A method belongs to the type of its receiver.
fn method(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let receiver = at.field("receiver").and_then(|list| child_of(list, "parameter_declaration"));
    let of = receiver.and_then(|receiver| receiver.child_by_field_name("type"));
    let of = of.map(|of| at.text(of)).unwrap_or_default();
    let of = of.trim_start_matches('*').split('[').next().unwrap_or_default();
    let qualifier = if of.is_empty() { String::new() } else { format!("{of}.") };
    found.extend(at.named("func", Class::Callable).map(|method| Found { qualifier, ..method }));
}

fn constants(at: &At<'_, '_>, found: &mut Vec<Found>) {
    names(at, "const", Class::Value, found);
}

fn variables(at: &At<'_, '_>, found: &mut Vec<Found>) {
    names(at, "var", Class::Value, found);
}

fn fields(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.outer != Some(Class::Type) {
        return;
    }
    match at.field("name") {
        Some(_) => names(at, "field", Class::Member, found),
        None => found.extend(at.field("type").map(|of| embedded(at, of))),
    }
}

/// A field without a name has that of its type, without package and type arguments.
fn embedded(at: &At<'_, '_>, mut of: Node<'_>) -> Found {
    if let Some(base) = of.child_by_field_name("type").filter(|_| of.kind() == "generic_type") {
        of = base;
    }
    at.found("field", Class::Member, of.child_by_field_name("name").unwrap_or(of))
}

/// Definitions of several names. Variables of functions do not count.
fn names(at: &At<'_, '_>, word: &'static str, class: Class, found: &mut Vec<Found>) {
    if at.in_callable {
        return;
    }
    let mut cursor = at.node.walk();
    for name in at.node.children_by_field_name("name", &mut cursor).take(super::MAX_CHILDREN) {
        if name.is_named() && at.text(name) != "_" {
            found.push(at.found(word, class, name));
        }
    }
}
