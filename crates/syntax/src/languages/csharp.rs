//! C#.

use super::{At, Found, Row, Rule, child_of};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("namespace_declaration", Rule::Named("namespace", Class::Block)),
    ("class_declaration", Rule::Named("class", Class::Type)),
    ("struct_declaration", Rule::Named("struct", Class::Type)),
    ("interface_declaration", Rule::Named("interface", Class::Type)),
    ("enum_declaration", Rule::Named("enum", Class::Type)),
    ("record_declaration", Rule::Named("record", Class::Type)),
    ("delegate_declaration", Rule::Named("delegate", Class::Type)),
    ("method_declaration", Rule::By(method)),
    ("constructor_declaration", Rule::Named("constructor", Class::Callable)),
    ("destructor_declaration", Rule::Named("destructor", Class::Callable)),
    ("local_function_statement", Rule::Named("function", Class::Callable)),
    ("property_declaration", Rule::Named("property", Class::Callable)),
    ("event_declaration", Rule::Named("event", Class::Callable)),
    ("enum_member_declaration", Rule::Named("constant", Class::Member)),
    ("field_declaration", Rule::By(fields)),
    ("event_field_declaration", Rule::By(fields)),
];

fn method(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let class = if at.field("body").is_some() { Class::Callable } else { Class::Prototype };
    found.extend(at.named("method", class));
}

fn fields(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(list) = child_of(at.node, "variable_declaration") else { return };
    let mut cursor = list.walk();
    let names = list.named_children(&mut cursor).filter_map(|one| one.child_by_field_name("name"));
    found
        .extend(names.take(super::MAX_CHILDREN).map(|name| at.found("field", Class::Member, name)));
}
