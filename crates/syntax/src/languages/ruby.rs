//! Ruby.

use super::{At, Found, Row, Rule};
use crate::definition::Class;

pub(crate) const TABLE: &[Row] = &[
    ("class", Rule::Named("class", Class::Type)),
    ("module", Rule::Named("module", Class::Block)),
    ("method", Rule::Named("def", Class::Callable)),
    ("singleton_method", Rule::By(singleton)),
    ("assignment", Rule::By(constant)),
];

fn singleton(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let object = at.field("object").map(|object| at.text(object)).unwrap_or_default();
    let qualifier = if object.is_empty() { object } else { format!("{object}.") };
    found.extend(at.named("def", Class::Callable).map(|method| Found { qualifier, ..method }));
}

fn constant(at: &At<'_, '_>, found: &mut Vec<Found>) {
    let left = at.field("left").filter(|left| left.kind() == "constant" && !at.in_callable);
    found.extend(left.map(|left| at.found("constant", Class::Value, left)));
}
