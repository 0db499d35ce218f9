//! Finds mistakes in the JSON Schema of a host program's tool: a keyword with a value that it cannot have would be ignored.

use serde_json::{Map, Value};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Keywords whose value is a number.
const NUMBERS: [&str; 9] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
];

/// The first mistake in a schema, with its place. `None` if there is none.
pub(crate) fn schema_fault(schema: &Map<String, Value>) -> Option<String> {
    fault_at("its schema", schema)
}

fn fault_at(place: &str, schema: &Map<String, Value>) -> Option<String> {
    schema.iter().find_map(|(keyword, value)| fault_of(place, keyword, value))
}

fn fault_of(place: &str, keyword: &str, value: &Value) -> Option<String> {
    let wrong = |expected: &str| Some(format!("{place}: `{keyword}` must be {expected}"));
    let inner = |name: &str| format!("{place}, `{name}`");
    match keyword {
        "type" => {
            let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
            let is_valid = match value {
                Value::Array(names) => !names.is_empty() && names.iter().all(is_type),
                name => is_type(name),
            };
            if is_valid { None } else { wrong(&format!("one of {}", TYPES.join(", "))) }
        }
        "properties" => match value {
            Value::Object(properties) => {
                properties.iter().find_map(|(name, schema)| fault(&inner(name), schema))
            }
            _ => wrong("an object with a schema for each name"),
        },
        // Older drafts have an array for the items of a tuple.
        "items" | "anyOf" | "oneOf" | "allOf" | "prefixItems" if value.is_array() => {
            let mut schemas = value.as_array().into_iter().flatten();
            schemas.find_map(|schema| fault(&inner(keyword), schema))
        }
        "items" | "additionalProperties" => fault(&inner(keyword), value),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => wrong("an array of schemas"),
        "required" => {
            let names = value.as_array();
            let is_valid = names.is_some_and(|names| names.iter().all(Value::is_string));
            if is_valid { None } else { wrong("an array of names") }
        }
        "enum" if !value.is_array() => wrong("an array of values"),
        "description" if !value.is_string() => wrong("a string"),
        // In older drafts they say whether `minimum` and `maximum` are exclusive.
        "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => None,
        keyword if NUMBERS.contains(&keyword) && !value.is_number() => wrong("a number"),
        _ => None,
    }
}

fn fault(place: &str, schema: &Value) -> Option<String> {
    match schema {
        Value::Object(schema) => fault_at(place, schema),
        Value::Bool(_) => None,
        _ => Some(format!("{place}: a schema is an object")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (schema, expected) in [
            (json!({"type": "obj"}), "its schema: `type` must be one of array, boolean"),
            (json!({"type": []}), "its schema: `type` must be one of"),
            (json!({"properties": ["a"]}), "its schema: `properties` must be an object with"),
            (json!({"properties": {"a": "string"}}), "its schema, `a`: a schema is an object"),
            (json!({"properties": {"a": {"type": "str"}}}), "its schema, `a`: `type` must be"),
            (json!({"required": "a"}), "its schema: `required` must be an array of names"),
            (json!({"items": {"enum": "a"}}), "its schema, `items`: `enum` must be an array"),
            (json!({"anyOf": {}}), "its schema: `anyOf` must be an array of schemas"),
            (json!({"items": [{"type": 1}]}), "its schema, `items`: `type` must be one of"),
            (
                json!({"anyOf": [{"minimum": "1"}]}),
                "its schema, `anyOf`: `minimum` must be a number",
            ),
        ] {
            let fault = schema_fault(schema.as_object().unwrap()).unwrap();
            assert!(fault.starts_with(expected), "{fault}");
        }
        let valid = json!({
            "type": "object",
            "properties": {
                "type": {"type": ["string", "null"], "enum": ["a", null]},
                "rest": {"type": "array", "items": true, "minItems": 1},
                "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
                "share": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            },
            "required": ["type"],
            "additionalProperties": false,
        });
        assert_eq!(schema_fault(valid.as_object().unwrap()), None);
    }
}
