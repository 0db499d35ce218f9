//! C and C++.

use tree_sitter::Node;

use super::{At, Found, Row, Rule, child_of, nameless};
use crate::definition::Class;

/// The rows of C, which C++ has too, and those of C++.
macro_rules! with_c {
    ($($row:expr),* $(,)?) => {
        &[
            ("function_definition", Rule::By(function)),
            ("declaration", Rule::By(declaration)),
            ("field_declaration", Rule::By(field)),
            ("type_definition", Rule::By(typedef)),
            ("struct_specifier", Rule::By(tagged)),
            ("union_specifier", Rule::By(tagged)),
            ("enum_specifier", Rule::By(tagged)),
            ("enumerator", Rule::Named("enumerator", Class::Member)),
            ("preproc_def", Rule::By(define)),
            ("preproc_function_def", Rule::Named("macro", Class::Callable)),
            $($row),*
        ]
    };
}

pub(crate) const C: &[Row] = with_c![];

pub(crate) const CPP: &[Row] = with_c![
    ("class_specifier", Rule::By(tagged)),
    ("namespace_definition", Rule::Named("namespace", Class::Block)),
    ("alias_declaration", Rule::Named("using", Class::Type)),
    ("concept_definition", Rule::Named("concept", Class::Type)),
    ("lambda_expression", Rule::Function(nameless)),
];

/// Declarators nest by their syntax: pointers, arrays, parameter lists. More is not written by hand.
const MAX_NESTED: usize = 20;

/// The name in a declarator, and whether it declares a function.
struct Declared<'t> {
    name: Node<'t>,
    /// Scopes before the name: `A::B::`.
    scopes: Vec<Node<'t>>,
    is_function: bool,
}

fn declared(declarator: Node<'_>) -> Option<Declared<'_>> {
    let (mut node, mut scopes, mut is_function) = (declarator, Vec::new(), false);
    for _ in 0..MAX_NESTED {
        let next = match node.kind() {
            "identifier" | "field_identifier" | "type_identifier" | "destructor_name"
            | "operator_name" | "primitive_type" => {
                return Some(Declared { name: node, scopes, is_function });
            }
            "operator_cast" => return Some(Declared { name: node, scopes, is_function: true }),
            "function_declarator" => {
                // In `int (*callback)(int)` a variable is declared, not a function.
                let inner = node.child_by_field_name("declarator")?;
                is_function = inner.kind() != "parenthesized_declarator" || is_function;
                Some(inner)
            }
            "qualified_identifier" => {
                scopes.extend(node.child_by_field_name("scope"));
                node.child_by_field_name("name")
            }
            "template_function" | "template_method" | "template_type" => {
                node.child_by_field_name("name")
            }
            "parenthesized_declarator" | "reference_declarator" | "attributed_declarator" => {
                node.named_child(0)
            }
            "dependent_name" => node.named_child(0),
            _ => node.child_by_field_name("declarator"),
        };
        node = next?;
    }
    None
}

fn function(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(declared) = at.field("declarator").and_then(declared) else { return };
    found.push(with_scopes(at, &declared, "function", Class::Callable));
}

/// A definition with the scopes of its declarator: `Runtime::` of `Runtime::call`.
fn with_scopes(
    at: &At<'_, '_>,
    declared: &Declared<'_>,
    word: &'static str,
    class: Class,
) -> Found {
    let mut one = at.found(word, class, declared.name);
    if declared.name.kind() == "operator_cast" {
        one.name = one.name.split('(').next().unwrap_or_default().trim().to_owned();
    }
    for scope in &declared.scopes {
        let scope = scope.child_by_field_name("name").unwrap_or(*scope);
        one.qualifier += &format!("{}::", at.text(scope));
    }
    one
}

/// Prototypes, and variables outside functions.
fn declaration(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.in_callable {
        return;
    }
    let is_extern = child_of(at.node, "storage_class_specifier")
        .is_some_and(|storage| at.text(storage) == "extern");
    for declarator in declarators(at) {
        let Some(declared) = declared(declarator) else { continue };
        let (word, class) = match (declared.is_function, is_extern) {
            (true, _) => ("function", Class::Prototype),
            (false, true) => ("variable", Class::Prototype),
            (false, false) if at.outer == Some(Class::Type) => ("field", Class::Member),
            (false, false) => ("variable", Class::Value),
        };
        found.push(with_scopes(at, &declared, word, class));
    }
}

fn field(at: &At<'_, '_>, found: &mut Vec<Found>) {
    for declarator in declarators(at) {
        let Some(declared) = declared(declarator) else { continue };
        let (word, class) = if declared.is_function {
            ("function", Class::Prototype)
        } else {
            ("field", Class::Member)
        };
        found.push(with_scopes(at, &declared, word, class));
    }
}

fn typedef(at: &At<'_, '_>, found: &mut Vec<Found>) {
    for declarator in declarators(at) {
        let name = declared(declarator).map(|declared| declared.name);
        found.extend(name.map(|name| at.found("typedef", Class::Type, name)));
    }
}

fn declarators<'t>(at: &At<'t, '_>) -> Vec<Node<'t>> {
    let mut cursor = at.node.walk();
    at.node.children_by_field_name("declarator", &mut cursor).take(super::MAX_CHILDREN).collect()
}

/// A structure, union, enumeration or class. Without a body it is a use of the name.
fn tagged(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.field("body").is_none() {
        return;
    }
    let word = match at.node.kind() {
        "struct_specifier" => "struct",
        "union_specifier" => "union",
        "enum_specifier" => "enum",
        _ => "class",
    };
    let Some(mut name) = at.field("name") else { return };
    let mut qualifier = String::new();
    if name.kind() == "qualified_identifier"
        && let Some(declared) = declared(name)
    {
        for scope in &declared.scopes {
            qualifier += &format!("{}::", at.text(*scope));
        }
        name = declared.name;
    }
    let name = name.child_by_field_name("name").unwrap_or(name);
    found.push(Found { qualifier, ..at.found(word, Class::Type, name) });
}

/// A macro without parameters is a constant. One without a value is an include guard or a switch.
fn define(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let class = if at.field("value").is_some() { Class::Value } else { Class::Member };
    found.extend(at.named("macro", class));
}
