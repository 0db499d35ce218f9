//! PHP.

use super::{At, Found, Row, Rule};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("namespace_definition", Rule::By(namespace)),
    ("function_definition", Rule::Named("function", Class::Callable)),
    ("method_declaration", Rule::By(method)),
    ("class_declaration", Rule::Named("class", Class::Type)),
    ("interface_declaration", Rule::Named("interface", Class::Type)),
    ("trait_declaration", Rule::Named("trait", Class::Type)),
    ("enum_declaration", Rule::Named("enum", Class::Type)),
    ("enum_case", Rule::Named("case", Class::Member)),
    ("const_element", Rule::By(constant)),
    ("property_element", Rule::By(property)),
];

/// A namespace without a body covers the rest of the file, and is not a definition.
fn namespace(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.field("body").is_some() {
        found.extend(at.named("namespace", Class::Block));
    }
}

fn method(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let class = if at.field("body").is_some() { Class::Callable } else { Class::Prototype };
    found.extend(at.named("method", class));
}

fn constant(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let class = if at.outer == Some(Class::Type) { Class::Member } else { Class::Value };
    found.extend(at.child("name").map(|name| at.found("const", class, name)));
}

fn property(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let name = at.field("name").and_then(|name| name.named_child(0));
    found.extend(name.map(|name| at.found("property", Class::Member, name)));
}
