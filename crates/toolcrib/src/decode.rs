//! Decodes the arguments of a call into a tool's struct.
//!
//! Models write `"50"` for 50, `filePath` for `file_path`, null for an omitted field, a list as a string that
//! contains JSON, `file:///a/b` for `/a/b`, 5 for the text of a variable. Such input is accepted if only one
//! meaning is possible. Other string values are never changed, so file content arrives exactly. Other input is an
//! error that shows the expected form.
//!
//! Decoding follows the schema, which is derived from the same struct, so the two cannot disagree.

use std::collections::HashSet;
use std::fmt::Display;

use serde_json::{Map, Number, Value};
use toolcrib_text::truncate_line;

use crate::error::Error;
use crate::message_names::{self, Name};
use crate::schema::Schema;
use crate::suggest::{fold, similar_names};
use crate::tool::{AnyTool, Entry};

/// Problems reported at once. The others show after these are fixed.
const MAX_PROBLEMS: usize = 5;

/// A decoded call, and notes about numbers that were changed to their bounds.
pub(crate) struct Decoded<'a> {
    pub(crate) tool: Box<dyn AnyTool + 'a>,
    pub(crate) notes: Vec<String>,
}

/// Decodes a call of the tool.
pub(crate) fn decode(
    entry: &Entry,
    schema: &Schema,
    arguments: Value,
) -> Result<Decoded<'static>, Error> {
    let whole = &schema.arguments;
    let mut fitting = Fitting { entry, whole, problems: Vec::new(), notes: Vec::new() };
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        arguments => arguments,
    };
    let fitted = fitting.object("", &schema.arguments, arguments);
    if fitting.problems.is_empty() {
        let tool =
            entry.source.decode(fitted).map_err(|problem| refuse(entry, schema, &[problem]))?;
        return Ok(Decoded { tool, notes: fitting.notes });
    }
    Err(refuse(entry, schema, &fitting.problems))
}

fn refuse(entry: &Entry, schema: &Schema, problems: &[String]) -> Error {
    let told = &problems[..problems.len().min(MAX_PROBLEMS)];
    let tool = Name::tool(entry.name);
    let arguments =
        message_names::current().arguments(entry.name, &schema.arguments, &HashSet::new());
    Error::invalid(format!("{tool}: {}.", told.join("; ")))
        .hint(format!("{tool} takes {}.", signature(&arguments)))
}

/// The fields on one line: `{"file_path": string, "offset"?: integer}`.
fn signature(schema: &Map<String, Value>) -> String {
    let fields: Vec<String> = properties(schema)
        .map(|(name, property)| {
            let optional = if is_required(schema, name) { "" } else { "?" };
            format!("\"{name}\"{optional}: {}", type_words(property))
        })
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// Fields that are paths.
const PATH_FIELDS: [&str; 4] = ["file_path", "path", "notebook_path", "cwd"];

/// The path of a `file:` URL in a field that is a path.
fn without_file_scheme(field: &str, value: Value) -> Value {
    let url = value.as_str().and_then(|text| text.strip_prefix("file://"));
    let path = url.filter(|path| path.starts_with('/') && PATH_FIELDS.contains(&field));
    path.and_then(percent_decoded).map_or(value, Value::String)
}

/// A text with `%20` and the like decoded. `None` if an escape or the result is not valid.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

struct Fitting<'a> {
    entry: &'a Entry,
    /// The schema of all arguments.
    whole: &'a Map<String, Value>,
    problems: Vec<String>,
    notes: Vec<String>,
}

impl Fitting<'_> {
    /// Converts a value to fit its schema, or adds a problem.
    fn value(&mut self, path: &str, schema: &Map<String, Value>, value: Value) -> Value {
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(path, schema, value),
            Some("array") => self.array(path, schema, value),
            Some("integer" | "number") => self.number(path, schema, value),
            Some("boolean") => self.boolean(path, value),
            Some("string") => self.string(path, schema, value),
            _ => value,
        }
    }

    fn object(&mut self, path: &str, schema: &Map<String, Value>, value: Value) -> Value {
        let fields = match unstring(value, Value::is_object) {
            Value::Object(fields) => fields,
            other => return self.wrong_type(path, "an object", other),
        };
        if !schema.contains_key("properties") {
            return self.map(path, schema, fields).into();
        }
        let mut fitted = Map::new();
        for (given, value) in fields {
            let Some(name) = self.field_name(schema, &given) else {
                self.unknown_field(path, schema, &given);
                continue;
            };
            let inner = join(path, self.name(name));
            if fitted.contains_key(name) {
                let given = clip(&given);
                self.problem(format!("`{inner}` is given twice, the second time as `{given}`"));
            } else if !value.is_null() || is_required(schema, name) {
                let empty = Map::new();
                let property = property(schema, name).unwrap_or(&empty);
                let value = if path.is_empty() {
                    let value = without_file_scheme(name, value);
                    self.within_bounds(&inner, name, property, value)
                } else {
                    value
                };
                let value = self.value(&inner, property, value);
                fitted.insert(name.to_owned(), value);
            }
        }
        for name in required(schema).filter(|name| !fitted.contains_key(*name)) {
            self.problem(format!("`{}` is missing", join(path, self.name(name))));
        }
        fitted.into()
    }

    /// An object with any names, such as those of variables.
    fn map(
        &mut self,
        path: &str,
        schema: &Map<String, Value>,
        fields: Map<String, Value>,
    ) -> Map<String, Value> {
        let Some(Value::Object(values)) = schema.get("additionalProperties") else { return fields };
        let is_text = values.get("type").is_some_and(|name| name == "string");
        let fitted = fields.into_iter().map(|(name, value)| {
            let inner = join(path, clip(&name));
            if is_text && value.is_f64() {
                // Its text is not known: 3.10 is 3.1.
                self.problem(format!("`{inner}`: {value} is a fraction; write it as a string"));
                return (name, Value::Null);
            }
            let value = if is_text { scalar_text(value) } else { value };
            let value = self.value(&inner, values, value);
            (name, value)
        });
        fitted.collect()
    }

    fn array(&mut self, path: &str, schema: &Map<String, Value>, value: Value) -> Value {
        let items = match unstring(value, Value::is_array) {
            Value::Array(items) => items,
            other => return self.wrong_type(path, "an array", other),
        };
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            self.problem(format!("`{path}` has {} items; at least {least} needed", items.len()));
        }
        let Some(Value::Object(item)) = schema.get("items") else {
            return items.into();
        };
        let fitted = items
            .into_iter()
            .enumerate()
            .map(|(at, value)| self.value(&format!("{path}[{at}]"), item, value));
        fitted.collect()
    }

    /// The maximum of a field instead of a greater number, or its minimum instead of a smaller one, if the tool allows
    /// that. A negative number is no size.
    fn within_bounds(
        &mut self,
        path: &str,
        field: &str,
        schema: &Map<String, Value>,
        value: Value,
    ) -> Value {
        let Some(given) = number(&value).and_then(|given| given.as_f64()) else { return value };
        let bound = |name| schema.get(name).and_then(|bound| Some((bound, bound.as_f64()?)));
        match (bound("minimum"), bound("maximum")) {
            (_, Some((maximum, most))) if given > most && self.entry.lowered.contains(&field) => {
                self.notes.push(format!("{path} was lowered to {maximum}, the maximum"));
                maximum.clone()
            }
            (Some((minimum, least)), _)
                if (0.0..least).contains(&given) && self.entry.raised.contains(&field) =>
            {
                let meaning = meaning(schema);
                self.notes.push(format!("{path} was raised to {minimum}, the minimum{meaning}"));
                minimum.clone()
            }
            _ => value,
        }
    }

    fn number(&mut self, path: &str, schema: &Map<String, Value>, value: Value) -> Value {
        let whole = schema.get("type").is_some_and(|name| name == "integer");
        let expected = if whole { "an integer" } else { "a number" };
        let Some(number) = number(&value) else {
            return self.wrong_type(path, expected, value);
        };
        let size = number.as_f64().unwrap_or(f64::NAN);
        for (bound, out, words) in [
            (
                "minimum",
                schema.get("minimum").and_then(Value::as_f64).is_some_and(|min| size < min),
                "less than the minimum",
            ),
            (
                "maximum",
                schema.get("maximum").and_then(Value::as_f64).is_some_and(|max| size > max),
                "more than the maximum",
            ),
        ] {
            if out {
                let limit = schema.get(bound).cloned().unwrap_or_default();
                let meaning = meaning(schema);
                self.problem(format!("`{path}`: {number} is {words} {limit}{meaning}"));
                return Value::Null;
            }
        }
        if number.as_i64().is_none() && number.is_u64() {
            self.problem(format!("`{path}`: {number} is too large"));
            return Value::Null;
        }
        if !whole || number.is_i64() {
            return number.into();
        }
        // 50.0 means 50. Beyond 2^53 a float does not identify one integer.
        if size.fract() == 0.0 && size.abs() < 9_007_199_254_740_992.0 {
            return Value::from(size as i64);
        }
        self.wrong_type(path, expected, value)
    }

    fn boolean(&mut self, path: &str, value: Value) -> Value {
        match &value {
            Value::Bool(_) => value,
            Value::String(text) if text.eq_ignore_ascii_case("true") => true.into(),
            Value::String(text) if text.eq_ignore_ascii_case("false") => false.into(),
            _ => self.wrong_type(path, "true or false", value),
        }
    }

    fn string(&mut self, path: &str, schema: &Map<String, Value>, value: Value) -> Value {
        let Value::String(text) = &value else {
            return self.wrong_type(path, "a string", value);
        };
        let Some(Value::Array(choices)) = schema.get("enum") else {
            return value;
        };
        if let Some(choice) = choices.iter().find(|c| c.as_str().map(fold) == Some(fold(text))) {
            return choice.clone();
        }
        let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        self.problem(format!("`{path}`: {} is not one of {}", shown(&value), choices.join(", ")));
        Value::Null
    }

    /// Field for a given name: by exact name, by alias, or by a unique name that differs only in case and `_`.
    fn field_name<'a>(&self, schema: &'a Map<String, Value>, given: &str) -> Option<&'a str> {
        let names = || properties(schema).map(|(name, _)| name);
        if let Some(name) = names().find(|name| *name == given) {
            return Some(name);
        }
        let alias = self.entry.aliases.iter().find(|(alias, _)| fold(alias) == fold(given));
        if let Some(name) = alias.and_then(|(_, field)| names().find(|name| name == field)) {
            return Some(name);
        }
        let mut alike = names().filter(|name| fold(name) == fold(given));
        match (alike.next(), alike.next()) {
            (Some(name), None) => Some(name),
            _ => None,
        }
    }

    fn unknown_field(&mut self, path: &str, schema: &Map<String, Value>, given: &str) {
        let names = properties(schema).map(|(name, _)| name);
        let mut elsewhere = Vec::new();
        self.add_places(given, self.whole, "", &mut elsewhere);
        let meant = match (similar_names(given, names, 1).first(), elsewhere.as_slice()) {
            (_, [place, others @ ..]) => {
                let others: String = others.iter().map(|other| format!(" and `{other}`")).collect();
                format!(", but `{place}`{others}")
            }
            (Some(name), []) => format!(" (did you mean `{}`?)", self.name(name)),
            (None, []) => String::new(),
        };
        self.problem(format!("there is no field `{}`{meant}", join(path, clip(given))));
    }

    /// Adds the places of the fields with a name in a part of the schema: a common mistake is a field at another level.
    fn add_places(
        &self,
        given: &str,
        schema: &Map<String, Value>,
        path: &str,
        places: &mut Vec<String>,
    ) {
        for (name, property) in properties(schema) {
            let place = join(path, self.name(name));
            if fold(name) == fold(given) {
                places.push(place.clone());
            }
            if let Some(item) = property.get("items").and_then(Value::as_object) {
                self.add_places(given, item, &format!("{place}[]"), places);
            }
        }
    }

    fn wrong_type(&mut self, path: &str, expected: &str, value: Value) -> Value {
        let place = if path.is_empty() { "the arguments".to_owned() } else { format!("`{path}`") };
        self.problem(format!("{place}: expected {expected}, got {}", shown(&value)));
        Value::Null
    }

    /// A field as messages spell it.
    fn name<'a>(&self, field: &'a str) -> Name<'a> {
        Name::field(self.entry.name, field)
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }
}

/// The text of a boolean or a number; any other value unchanged.
fn scalar_text(value: Value) -> Value {
    match &value {
        Value::Bool(_) | Value::Number(_) => value.to_string().into(),
        _ => value,
    }
}

/// The number in a value, which may be a string.
fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Parses a string that contains JSON of the wanted type; returns any other value unchanged.
fn unstring(value: Value, wanted: impl Fn(&Value) -> bool) -> Value {
    if let Value::String(text) = &value
        && let Ok(inner) = crate::strict_json::parse_json(text.as_bytes())
        && wanted(&inner)
    {
        return inner;
    }
    value
}

fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().filter_map(|(name, p)| Some((name.as_str(), p.as_object()?)))
}

fn property<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    schema.get("properties")?.get(name)?.as_object()
}

fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    required(schema).any(|required| required == name)
}

fn type_words(property: &Map<String, Value>) -> String {
    if let Some(Value::Array(choices)) = property.get("enum") {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return choices.join(" | ");
    }
    match property.get("items").and_then(Value::as_object) {
        Some(item) if item.contains_key("properties") => format!("[{}]", signature(item)),
        Some(item) => format!("[{}]", type_words(item)),
        None => property.get("type").and_then(Value::as_str).unwrap_or("any").to_owned(),
    }
}

/// The unit of a number in parentheses, if it has a description.
fn meaning(schema: &Map<String, Value>) -> String {
    let unit = schema.get("description").and_then(Value::as_str).map(unit);
    unit.map_or(String::new(), |unit| format!(" ({unit})"))
}

/// The unit of a number: the beginning of its description.
fn unit(description: &str) -> String {
    let mut letters = description.split(['.', ';']).next().unwrap_or_default().chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

/// Type and abridged content of a value, for errors.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string {:?}", clip(text)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Truncates a name or value for an error.
fn clip(text: &str) -> String {
    truncate_line(text, 40)
}

fn join(path: &str, name: impl Display) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}
