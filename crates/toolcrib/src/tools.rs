//! The table of built-in tools: one file each, one line each.

mod apply_patch;
mod bash;
mod bash_output;
mod changed_files;
mod content_checks;
mod edit;
mod escaped_newlines;
mod glob;
mod grep;
mod history;
mod invisible_notes;
mod job_status_text;
mod kill_shell;
pub(crate) mod limit_notes;
mod list_shells;
mod ls;
mod multi_edit;
mod notebook_edit;
mod read;
mod replacement;
mod shell_output;
mod shown_diff;
mod skipped_files;
mod undo;
mod unrecorded_changes;
mod write;

pub(crate) use self::undo::Undo;
use crate::tool::Entry;

/// Every tool, in the order in which a model reads them.
pub(crate) const TOOLS: &[Entry] = &[
    Entry::of::<read::Read>(),
    Entry::of::<write::Write>(),
    Entry::of::<edit::Edit>(),
    Entry::of::<multi_edit::MultiEdit>(),
    Entry::of::<apply_patch::ApplyPatch>(),
    Entry::of::<notebook_edit::NotebookEdit>(),
    Entry::of::<ls::Ls>(),
    Entry::of::<glob::Glob>(),
    Entry::of::<grep::Grep>(),
    Entry::of::<bash::Bash>(),
    Entry::of::<bash_output::BashOutput>(),
    Entry::of::<kill_shell::KillShell>(),
    Entry::of::<list_shells::ListShells>(),
    Entry::of::<undo::Undo>(),
    Entry::of::<history::History>(),
];

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::decode::decode;
    use crate::tool::Tool;
    use crate::tool_table::Table;

    /// Our tools satisfy the requirements for registered tools.
    #[test]
    fn every_tool_could_be_registered() {
        let table = Table::new(TOOLS);
        for row in table.rows() {
            assert_eq!(table.fault(row), None, "{}", row.entry.name);
        }
    }

    #[test]
    fn every_field_of_every_tool_is_described_and_has_one_type() {
        fn check(place: &str, schema: &Value) {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (name, property) in properties {
                let place = format!("{place}.{name}");
                assert!(property["type"].is_string(), "{place} has no single type");
                assert!(property["description"].is_string(), "{place} has no doc comment");
                check(&place, property);
                if let Some(items) = property.get("items") {
                    check(&place, items);
                }
            }
        }
        for row in Table::new(TOOLS).rows() {
            let schema = Value::Object(row.schema().arguments.clone());
            assert_eq!(
                schema["additionalProperties"], false,
                "{} takes unknown fields",
                row.entry.name
            );
            check(row.entry.name, &schema);
        }
    }

    #[test]
    fn every_alias_means_a_field_and_hides_none() {
        fn fields(schema: &Value) -> Vec<String> {
            let properties = schema.get("properties").and_then(Value::as_object);
            let own = properties.into_iter().flatten().flat_map(|(name, property)| {
                let inner = property.get("items").map(fields).unwrap_or_default();
                std::iter::once(name.clone()).chain(inner)
            });
            own.collect()
        }
        for row in Table::new(TOOLS).rows() {
            let fields = fields(&Value::Object(row.schema().arguments.clone()));
            let has = |name: &str| fields.iter().any(|field| field == name);
            for (alias, field) in row.entry.aliases {
                assert!(has(field), "{}: no field {field}", row.entry.name);
                assert!(!has(alias), "{}: {alias} is a field", row.entry.name);
            }
        }
    }

    /// Arguments with every required field.
    fn least_arguments(schema: &Value) -> Map<String, Value> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let names = required.iter().filter_map(Value::as_str);
        names.map(|name| (name.to_owned(), sample(&schema["properties"][name]))).collect()
    }

    /// A value that a schema accepts.
    fn sample(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("array") => json!([sample(&schema["items"])]),
            Some("object") => least_arguments(schema).into(),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("boolean") => true.into(),
            _ => schema.get("enum").map_or(json!("x"), |choices| choices[0].clone()),
        }
    }

    /// Checks a property, given its path, its schema, and a function that puts a value for it into valid arguments.
    type Check<'a> = dyn FnMut(&str, &Value, &dyn Fn(Option<Value>) -> Value) + 'a;

    /// Calls `check` with every property of a schema, also of objects in arrays.
    fn each_property(
        schema: &Value,
        place: &str,
        wrap: &dyn Fn(Map<String, Value>) -> Value,
        check: &mut Check<'_>,
    ) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let with = |value: Option<Value>| {
                let mut arguments = least_arguments(schema);
                arguments.shift_remove(name);
                arguments.extend(value.map(|value| (name.clone(), value)));
                wrap(arguments)
            };
            let place = format!("{place}.{name}");
            check(&place, property, &with);
            if property["items"].get("properties").is_some() {
                let inside = |item: Map<String, Value>| with(Some(json!([item])));
                each_property(&property["items"], &place, &inside, check);
            }
        }
    }

    /// Checks that decoding enforces the bounds, choices and defaults of a schema.
    fn check_schema<T: Tool + std::fmt::Debug>() {
        let table = Table::new(&[Entry::of::<T>()]);
        let row = &table.rows()[0];
        let schema = Value::Object(row.schema().arguments.clone());
        let decoded = |arguments: Value| -> Result<String, String> {
            decode(&row.entry, row.schema(), arguments.clone())
                .map_err(|error| error.text())
                .and_then(|_| {
                    // Decoded again as the type, so that fields can be compared.
                    let tool: T = serde_json::from_value(arguments).map_err(|e| e.to_string())?;
                    Ok(format!("{tool:?}"))
                })
        };
        each_property(
            &schema,
            T::NAME,
            &|arguments| arguments.into(),
            &mut |place, property, with| {
                let accepts = |value: Value| decoded(with(Some(value))).is_ok();
                for (bound, step) in [("minimum", -1), ("maximum", 1)] {
                    if let Some(limit) = property.get(bound).and_then(Value::as_i64) {
                        assert!(accepts(limit.into()), "{place}: its {bound} {limit} is refused");
                        let field = place.rsplit('.').next().unwrap_or_default();
                        let is_adapted = match bound {
                            "maximum" => T::LOWERED.contains(&field),
                            _ => T::RAISED.contains(&field) && limit > 0,
                        };
                        assert_eq!(
                            accepts((limit + step).into()),
                            is_adapted,
                            "{place}: {bound} {limit} is not held"
                        );
                    }
                }
                for choice in property["enum"].as_array().into_iter().flatten() {
                    assert!(accepts(choice.clone()), "{place}: {choice} is refused");
                }
                if property.get("enum").is_some() {
                    assert!(!accepts("none of these".into()), "{place} takes anything");
                }
                if property.get("minItems").is_some() {
                    assert!(!accepts(json!([])), "{place}: minItems is not held");
                }
                if let Some(default) = property.get("default") {
                    let given = decoded(with(Some(default.clone())));
                    assert!(given.is_ok(), "{place}: its default is refused: {given:?}");
                    assert_eq!(decoded(with(None)), given, "{place}: {default} is not the default");
                }
            },
        );
    }

    #[test]
    fn schemas_say_what_decoding_holds_to() {
        let checks = [
            check_schema::<read::Read>,
            check_schema::<write::Write>,
            check_schema::<edit::Edit>,
            check_schema::<multi_edit::MultiEdit>,
            check_schema::<apply_patch::ApplyPatch>,
            check_schema::<notebook_edit::NotebookEdit>,
            check_schema::<ls::Ls>,
            check_schema::<glob::Glob>,
            check_schema::<grep::Grep>,
            check_schema::<bash::Bash>,
            check_schema::<bash_output::BashOutput>,
            check_schema::<kill_shell::KillShell>,
            check_schema::<list_shells::ListShells>,
            check_schema::<undo::Undo>,
            check_schema::<history::History>,
        ];
        assert_eq!(checks.len(), TOOLS.len());
        checks.into_iter().for_each(|check: fn()| check());
    }

    #[test]
    fn hints_do_not_contradict_each_other() {
        for row in Table::new(TOOLS).rows() {
            let hints = row.entry.hints;
            assert!(!(hints.read_only && hints.destructive), "{}", row.entry.name);
        }
    }
}
