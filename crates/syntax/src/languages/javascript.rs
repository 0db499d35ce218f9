//! JavaScript and TypeScript.

use tree_sitter::Node;

use super::{At, Found, Row, Rule};
use crate::definition::Class;

/// The rows of JavaScript, which TypeScript has too, and those of TypeScript.
macro_rules! with_javascript {
    ($($row:expr),* $(,)?) => {
        &[
            ("function_declaration", Rule::Named("function", Class::Callable)),
            ("generator_function_declaration", Rule::Named("function", Class::Callable)),
            ("class_declaration", Rule::Named("class", Class::Type)),
            ("method_definition", Rule::Named("method", Class::Callable)),
            ("field_definition", Rule::By(field)),
            ("variable_declarator", Rule::By(variable)),
            ("assignment_expression", Rule::By(assignment)),
            ("pair", Rule::By(pair)),
            $($row),*
        ]
    };
}

pub(crate) const JAVASCRIPT: &[Row] = with_javascript![];

pub(crate) const TYPESCRIPT: &[Row] = with_javascript![
    ("abstract_class_declaration", Rule::Named("class", Class::Type)),
    ("interface_declaration", Rule::Named("interface", Class::Type)),
    ("type_alias_declaration", Rule::Named("type", Class::Type)),
    ("enum_declaration", Rule::Named("enum", Class::Type)),
    ("enum_body", Rule::By(enum_members)),
    ("module", Rule::Named("module", Class::Block)),
    ("internal_module", Rule::Named("namespace", Class::Block)),
    ("function_signature", Rule::Named("function", Class::Prototype)),
    ("method_signature", Rule::Named("method", Class::Prototype)),
    ("abstract_method_signature", Rule::Named("method", Class::Prototype)),
    ("property_signature", Rule::By(property)),
    ("public_field_definition", Rule::By(field)),
];

/// Larger enumerations are generated.
const MAX_ENUM_MEMBERS: usize = 1_000;

/// A function as a value has the name to which it is assigned.
fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression" | "generator_function")
}

fn value_class(value: Option<Node<'_>>) -> Option<(&'static str, Class)> {
    let value = value?;
    match value.kind() {
        "class" => Some(("class", Class::Type)),
        _ if is_function(value) => Some(("function", Class::Callable)),
        _ => None,
    }
}

fn variable(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(name) = at.field("name").filter(|name| name.kind() == "identifier") else { return };
    let class = value_class(at.field("value"));
    let class = class.or_else(|| (!at.in_callable).then_some(("variable", Class::Value)));
    found.extend(class.map(|(word, class)| at.found(word, class, name)));
}

fn field(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(name) = at.field("name").or_else(|| at.field("property")) else { return };
    let (word, class) = match value_class(at.field("value")) {
        Some((_, Class::Callable)) => ("method", Class::Callable),
        _ => ("field", Class::Member),
    };
    found.push(at.found(word, class, name));
}

/// Properties of interfaces. Those of nameless types are not definitions.
fn property(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if matches!(at.parent, "interface_body" | "object_type") && at.outer == Some(Class::Type) {
        found.extend(at.named("property", Class::Member));
    }
}

/// `exports.name = function …` and `A.prototype.name = …`.
fn assignment(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some((word, class)) = value_class(at.field("right")) else { return };
    let Some(left) = at.field("left").filter(|left| left.kind() == "member_expression") else {
        return;
    };
    let (Some(name), Some(object)) =
        (left.child_by_field_name("property"), left.child_by_field_name("object"))
    else {
        return;
    };
    let object = at.text(object).replace(".prototype", "");
    let qualifier = match object.as_str() {
        "exports" | "module.exports" | "module" | "this" => String::new(),
        _ if object.len() > 60 => String::new(),
        _ => format!("{object}."),
    };
    found.push(Found { qualifier, ..at.found(word, class, name) });
}

/// A function in an object.
fn pair(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let is_name = |key: &Node<'_>| key.kind() == "property_identifier";
    let Some(key) = at.field("key").filter(is_name) else { return };
    if at.field("value").is_some_and(is_function) {
        found.push(at.found("method", Class::Callable, key));
    }
}

fn enum_members(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let mut cursor = at.node.walk();
    for member in at.node.named_children(&mut cursor).take(MAX_ENUM_MEMBERS) {
        let name = member.child_by_field_name("name").unwrap_or(member);
        if matches!(name.kind(), "property_identifier" | "string") {
            found.push(at.found("member", Class::Member, name));
        }
    }
}
