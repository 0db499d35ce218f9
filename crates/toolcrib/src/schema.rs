//! JSON Schema of a tool's arguments, derived from its struct, in a form that all clients accept: flat, without
//! `$ref`, without unions with null, fields in the order of the struct.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Description and arguments of a tool, for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    /// Doc comment of the struct.
    pub(crate) description: String,
    /// JSON Schema of the arguments, an object.
    pub(crate) arguments: Map<String, Value>,
}

impl Schema {
    pub(crate) fn of<T: JsonSchema>() -> Schema {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        Schema::of_value(settings.into_generator().into_root_schema_for::<T>().to_value())
    }

    /// From a JSON Schema without references, whose `description` is the tool's.
    pub(crate) fn of_value(mut value: Value) -> Schema {
        flatten(&mut value);
        let mut arguments = match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        let description = match arguments.remove("description") {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        Schema { description, arguments }
    }
}

/// Removes keywords that only some clients support or that do not help a model.
fn flatten(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    for noise in ["$schema", "title", "format"] {
        object.remove(noise);
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    unwrap_nullable(object);
    collect_constants(object);
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = join_wrapped_lines(text);
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(flatten);
    }
    for keyword in ["items", "additionalProperties"] {
        object.get_mut(keyword).into_iter().for_each(flatten);
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(schemas)) = object.get_mut(keyword) {
            schemas.iter_mut().for_each(flatten);
        }
    }
}

/// An optional field may be omitted. The schema does not allow null, which decoding accepts anyway.
fn unwrap_nullable(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(options)) = object.get_mut("anyOf") {
        options.retain(|schema| !is_null(schema));
        if let [Value::Object(only)] = options.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// Converts the list of constants of an enum with documented variants to a plain `enum`.
fn collect_constants(object: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = object.get("oneOf") else {
        return;
    };
    let constants: Option<Vec<Value>> = options
        .iter()
        .map(|option| option.get("const").filter(|c| c.is_string()).cloned())
        .collect();
    if let Some(constants) = constants {
        object.remove("oneOf");
        object.insert("type".into(), "string".into());
        object.insert("enum".into(), constants.into());
    }
}

/// Joins wrapped lines of doc comments into paragraphs.
fn join_wrapped_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        let starts_anew = line.is_empty() || line.starts_with("- ");
        if joined.is_empty() || joined.ends_with('\n') {
        } else if starts_anew {
            joined.push('\n');
        } else {
            joined.push(' ');
        }
        joined.push_str(line);
        if line.is_empty() {
            joined.push('\n');
        }
    }
    joined.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What it does, over
    /// two lines.
    ///
    /// - one
    /// - two
    #[derive(JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Sample {
        /// A field called title.
        title: String,
        /// How
        /// many.
        #[schemars(range(min = 1, max = 9))]
        count: Option<u32>,
        mode: Option<Mode>,
        parts: Vec<Part>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Mode {
        /// The first.
        OneWay,
        /// The second.
        TheOther,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Part {
        old: String,
    }

    #[test]
    fn a_struct_becomes_a_flat_schema_in_its_own_order() {
        let schema = Schema::of::<Sample>();
        assert_eq!(schema.description, "What it does, over two lines.\n\n- one\n- two");
        let expected = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "A field called title."},
                "count": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
                "mode": {"type": "string", "enum": ["one_way", "the_other"]},
                "parts": {"type": "array", "items": {
                    "type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"],
                }},
            },
            "additionalProperties": false,
            "required": ["title", "parts"],
        });
        assert_eq!(Value::Object(schema.arguments.clone()), expected);
        let Some(Value::Object(properties)) = schema.arguments.get("properties") else { panic!() };
        assert!(properties.keys().eq(["title", "count", "mode", "parts"]));
    }
}
