//! Rust.

use super::{At, Found, Row, Rule};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("function_item", Rule::Named("fn", Class::Callable)),
    ("function_signature_item", Rule::Named("fn", Class::Prototype)),
    ("struct_item", Rule::Named("struct", Class::Type)),
    ("enum_item", Rule::Named("enum", Class::Type)),
    ("union_item", Rule::Named("union", Class::Type)),
    ("trait_item", Rule::Named("trait", Class::Type)),
    ("type_item", Rule::Named("type", Class::Type)),
    ("associated_type", Rule::Named("type", Class::Prototype)),
    ("macro_definition", Rule::Named("macro", Class::Callable)),
    ("enum_variant", Rule::Named("variant", Class::Member)),
    ("field_declaration", Rule::Named("field", Class::Member)),
    ("const_item", Rule::By(constant)),
    ("static_item", Rule::Named("static", Class::Value)),
    ("mod_item", Rule::By(module)),
    ("impl_item", Rule::By(implementation)),
];

fn constant(at: &At<'_, '_>, found: &mut Vec<Found>) {
    found.extend(at.named("const", Class::Value).filter(|one| one.name != "_"));
}

fn module(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let class = if at.field("body").is_some() { Class::Block } else { Class::Prototype };
    found.extend(at.named("mod", class));
}

/// The name is the type without its arguments.
fn implementation(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let Some(of) = at.field("type") else { return };
    let header = match at.field("trait") {
        Some(of_trait) => format!("impl {} for {}", at.text(of_trait), at.text(of)),
        None => format!("impl {}", at.text(of)),
    };
    let mut base = of;
    while let Some(inner) =
        base.child_by_field_name("type").or_else(|| base.child_by_field_name("trait"))
    {
        base = inner;
    }
    let base = base.child_by_field_name("name").unwrap_or(base);
    found.push(Found { header: Some(header), ..at.found("impl", Class::Block, base) });
}
