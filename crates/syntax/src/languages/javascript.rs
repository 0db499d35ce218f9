//! JavaScript and TypeScript.

use tree_sitter::Node;

use super::{At, Found, Row, Rule, nameless};
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
            ("augmented_assignment_expression", Rule::By(assignment)),
            ("pair", Rule::By(pair)),
            ("export_statement", Rule::By(default_export)),
            ("function_expression", Rule::Function(named_function)),
            ("generator_function", Rule::Function(named_function)),
            ("class", Rule::By(named_class)),
            ("arrow_function", Rule::Function(nameless)),
            ("class_static_block", Rule::Function(nameless)),
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
    ("enum_assignment", Rule::Named("member", Class::Member)),
    ("property_identifier", Rule::By(enum_member)),
    ("string", Rule::By(enum_member)),
    ("ambient_declaration", Rule::By(global)),
    ("required_parameter", Rule::By(parameter_property)),
    ("optional_parameter", Rule::By(parameter_property)),
    ("module", Rule::Named("module", Class::Block)),
    ("internal_module", Rule::Named("namespace", Class::Block)),
    ("function_signature", Rule::Named("function", Class::Prototype)),
    ("method_signature", Rule::Named("method", Class::Prototype)),
    ("abstract_method_signature", Rule::Named("method", Class::Prototype)),
    ("property_signature", Rule::By(property)),
    ("public_field_definition", Rule::By(field)),
];

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
    let Some(name) = at.field("name") else { return };
    if name.kind() != "identifier" {
        return destructured(at, name, found);
    }
    let class = value_class(at.field("value"));
    let class = class.or_else(|| (!at.in_callable).then_some(("variable", Class::Value)));
    found.extend(class.map(|(word, class)| at.found(word, class, name)));
}

/// Deeper patterns are not examined.
const MAX_PATTERN_DEPTH: usize = 8;

/// The variables of `const { a, b: [c] } = …`.
fn destructured(at: &At<'_, '_>, pattern: Node<'_>, found: &mut Vec<Found>) {
    if at.in_callable {
        return;
    }
    let mut patterns = vec![(pattern, 0)];
    while let Some((pattern, depth)) = patterns.pop() {
        match pattern.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => {
                found.push(at.found("variable", Class::Value, pattern));
            }
            _ if depth == MAX_PATTERN_DEPTH => {}
            // Its other parts are a key or a default value.
            "pair_pattern" => {
                patterns.extend(pattern.child_by_field_name("value").map(|one| (one, depth + 1)));
            }
            "assignment_pattern" | "object_assignment_pattern" => {
                patterns.extend(pattern.child_by_field_name("left").map(|one| (one, depth + 1)));
            }
            "object_pattern" | "array_pattern" | "rest_pattern" => {
                let mut cursor = pattern.walk();
                let parts = pattern.named_children(&mut cursor).take(super::MAX_CHILDREN);
                let parts: Vec<Node<'_>> = parts.collect();
                patterns.extend(parts.into_iter().rev().map(|one| (one, depth + 1)));
            }
            _ => {}
        }
    }
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

/// A member of an enumeration without a value.
fn enum_member(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.parent == "enum_body" {
        found.push(at.found("member", Class::Member, at.node));
    }
}

/// A function as an expression has a name of its own, unless it is assigned to one.
fn named_function(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if !is_assigned(at) {
        found.extend(at.named("function", Class::Callable));
    }
}

fn named_class(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if !is_assigned(at) {
        found.extend(at.named("class", Class::Type));
    }
}

/// Whether a value has the name of a variable, field or property.
fn is_assigned(at: &At<'_, '_>) -> bool {
    matches!(
        at.parent,
        "variable_declarator"
            | "assignment_expression"
            | "augmented_assignment_expression"
            | "pair"
            | "field_definition"
            | "public_field_definition"
    )
}

/// `export default function () {}`: its name for other files is `default`.
fn default_export(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(keyword) = at.child("default") else { return };
    let Some(value) = at.field("value") else { return };
    if value.child_by_field_name("name").is_none() {
        let class = value_class(Some(value));
        found.extend(class.map(|(word, class)| at.found(word, class, keyword)));
    }
}

/// `declare global { … }`.
fn global(at: &At<'_, '_>, found: &mut Vec<Found>) {
    found.extend(at.child("global").map(|name| Found {
        header: Some("declare global".to_owned()),
        ..at.found("module", Class::Block, name)
    }));
}

/// `constructor(private readonly name: string)` defines a field.
fn parameter_property(at: &At<'_, '_>, found: &mut Vec<Found>) {
    const MODIFIERS: [&str; 3] = ["accessibility_modifier", "readonly", "override_modifier"];
    if MODIFIERS.iter().any(|modifier| at.child(modifier).is_some()) {
        let name = at.field("pattern").filter(|name| name.kind() == "identifier");
        found.extend(name.map(|name| at.found("field", Class::Member, name)));
    }
}
