//! Kotlin.

use super::{At, Found, Row, Rule, child_of, nameless};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("class_declaration", Rule::By(class)),
    ("object_declaration", Rule::Named("object", Class::Type)),
    ("companion_object", Rule::By(companion)),
    ("function_declaration", Rule::By(function)),
    ("secondary_constructor", Rule::By(constructor)),
    ("property_declaration", Rule::By(property)),
    ("type_alias", Rule::By(alias)),
    ("enum_entry", Rule::By(entry)),
    ("lambda_literal", Rule::Function(nameless)),
    ("anonymous_function", Rule::Function(nameless)),
    ("anonymous_initializer", Rule::Function(nameless)),
    ("getter", Rule::Function(nameless)),
    ("setter", Rule::Function(nameless)),
];

fn class(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let word = match at.child("interface") {
        Some(_) => "interface",
        None if at.child("enum_class_body").is_some() => "enum",
        None => "class",
    };
    found.extend(at.named(word, Class::Type));
}

fn companion(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let one = at.named("object", Class::Block);
    found.push(one.unwrap_or_else(|| Found {
        name: "Companion".to_owned(),
        header: Some("companion object".to_owned()),
        ..at.found("object", Class::Block, at.node)
    }));
}

/// An extension function belongs to the type that it extends.
fn function(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(name) = at.field("name") else { return };
    let before = name.prev_sibling().filter(|dot| dot.kind() == ".");
    let receiver = before.and_then(|dot| dot.prev_sibling()).map(|node| at.text(node));
    let qualifier = receiver.map_or(String::new(), |receiver| {
        format!("{}.", receiver.split('<').next().unwrap_or_default())
    });
    let class =
        if at.child("function_body").is_some() { Class::Callable } else { Class::Prototype };
    found.push(Found { qualifier, ..at.found("fun", class, name) });
}

fn constructor(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let keyword = at.child("constructor").unwrap_or(at.node);
    let name = "constructor".to_owned();
    let header = Some(name.clone());
    found.push(Found { name, header, ..at.found("constructor", Class::Callable, keyword) });
}

fn property(at: &At<'_, '_>, found: &mut Vec<Found>) {
    if at.in_callable {
        return;
    }
    let variable = at.child("variable_declaration");
    let name = variable.and_then(|variable| child_of(variable, "identifier"));
    let class = if at.outer == Some(Class::Type) { Class::Member } else { Class::Value };
    found.extend(name.map(|name| at.found("val", class, name)));
}

fn alias(at: &At<'_, '_>, found: &mut Vec<Found>) {
    found.extend(at.field("type").map(|name| at.found("typealias", Class::Type, name)));
}

fn entry(at: &At<'_, '_>, found: &mut Vec<Found>) {
    found.extend(at.child("identifier").map(|name| at.found("entry", Class::Member, name)));
}
