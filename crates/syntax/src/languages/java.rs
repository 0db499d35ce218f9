//! Java.

use super::{At, Found, Row, Rule};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("class_declaration", Rule::Named("class", Class::Type)),
    ("interface_declaration", Rule::Named("interface", Class::Type)),
    ("enum_declaration", Rule::Named("enum", Class::Type)),
    ("record_declaration", Rule::Named("record", Class::Type)),
    ("annotation_type_declaration", Rule::Named("@interface", Class::Type)),
    ("method_declaration", Rule::By(method)),
    ("constructor_declaration", Rule::Named("constructor", Class::Callable)),
    ("compact_constructor_declaration", Rule::Named("constructor", Class::Callable)),
    ("annotation_type_element_declaration", Rule::Named("element", Class::Member)),
    ("enum_constant", Rule::Named("constant", Class::Member)),
    ("field_declaration", Rule::By(fields)),
    ("constant_declaration", Rule::By(fields)),
];

/// Methods of interfaces have no body, and are where callers look.
fn method(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let class = if at.field("body").is_some() { Class::Callable } else { Class::Prototype };
    found.extend(at.named("method", class));
}

fn fields(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let mut cursor = at.node.walk();
    let declarators = at.node.children_by_field_name("declarator", &mut cursor);
    let names = declarators.filter_map(|one| one.child_by_field_name("name"));
    found
        .extend(names.take(super::MAX_CHILDREN).map(|name| at.found("field", Class::Member, name)));
}
