//! Swift.

use super::{At, Found, Row, Rule, nameless};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("class_declaration", Rule::By(class)),
    ("protocol_declaration", Rule::Named("protocol", Class::Type)),
    ("function_declaration", Rule::Named("func", Class::Callable)),
    ("protocol_function_declaration", Rule::Named("func", Class::Prototype)),
    ("init_declaration", Rule::By(initializer)),
    ("deinit_declaration", Rule::By(initializer)),
    ("subscript_declaration", Rule::By(initializer)),
    ("typealias_declaration", Rule::Named("typealias", Class::Type)),
    ("associatedtype_declaration", Rule::Named("associatedtype", Class::Prototype)),
    ("macro_declaration", Rule::Named("macro", Class::Callable)),
    ("property_declaration", Rule::By(property)),
    ("protocol_property_declaration", Rule::By(property)),
    ("enum_entry", Rule::By(entry)),
    ("lambda_literal", Rule::Function(nameless)),
    ("computed_property", Rule::Function(nameless)),
    ("willset_didset_block", Rule::Function(nameless)),
];

/// The node of classes, structures, enumerations, actors and extensions.
fn class(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let (Some(kind), Some(name)) = (at.field("declaration_kind"), at.field("name")) else { return };
    let (word, class) = match at.text(kind).as_str() {
        "struct" => ("struct", Class::Type),
        "enum" => ("enum", Class::Type),
        "actor" => ("actor", Class::Type),
        "extension" => ("extension", Class::Block),
        _ => ("class", Class::Type),
    };
    found.push(at.found(word, class, name));
}

/// Definitions whose name is their keyword.
fn initializer(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let word = match at.node.kind() {
        "init_declaration" => "init",
        "deinit_declaration" => "deinit",
        _ => "subscript",
    };
    let (name, keyword) = (word.to_owned(), at.child(word).unwrap_or(at.node));
    let header = Some(name.clone());
    found.push(Found { name, header, ..at.found(word, Class::Callable, keyword) });
}

fn property(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.in_callable {
        return;
    }
    let class = if at.outer.is_some() { Class::Member } else { Class::Value };
    let name = at.field("name").and_then(|name| name.child_by_field_name("bound_identifier"));
    found.extend(name.map(|name| at.found("var", class, name)));
}

fn entry(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let mut cursor = at.node.walk();
    let names = at.node.children_by_field_name("name", &mut cursor).take(super::MAX_CHILDREN);
    let names = names.filter(|name| name.kind() == "simple_identifier");
    found.extend(names.map(|name| at.found("case", Class::Member, name)));
}
