//! A line of `toolcrib run`, understood.

use serde_json::{Map, Value};
use toolcrib::{Call, Error, parse_json};

/// A call, and how its reply is to come.
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) call: Call,
    pub(super) wait: bool,
    pub(super) dry_run: bool,
}

const SHAPE: &str = r#"A line is {"id": …, "tool": "Read", "args": {…}}, with "wait": true or "dry_run": true if needed."#;

impl Request {
    /// Reads a line. An error comes with the id, as far as there is one.
    pub(super) fn parse(line: &[u8]) -> Result<Request, (Value, Error)> {
        match parse_json(line) {
            Ok(Value::Object(mut fields)) => {
                let id = fields.shift_remove("id").unwrap_or_default();
                Request::from_fields(fields)
                    .map(|request| Request { id: id.clone(), ..request })
                    .map_err(|error| (id, error.hint(SHAPE)))
            }
            Ok(_) => Err((Value::Null, Error::invalid("the line is no JSON object").hint(SHAPE))),
            Err(error) => Err((Value::Null, error.hint(SHAPE))),
        }
    }

    fn from_fields(mut fields: Map<String, Value>) -> Result<Request, Error> {
        let tool = match fields.shift_remove("tool") {
            Some(Value::String(tool)) => tool,
            Some(_) => return Err(Error::invalid("`tool` is no string")),
            None => return Err(Error::invalid("`tool` is missing")),
        };
        let args = fields.shift_remove("args").unwrap_or_default();
        let wait = flag(&mut fields, "wait")?;
        let dry_run = flag(&mut fields, "dry_run")?;
        match fields.keys().next() {
            Some(name) => {
                Err(Error::invalid(format!("there is no field `{}` in a line", shown(name))))
            }
            None => Ok(Request { id: Value::Null, call: Call::new(tool, args), wait, dry_run }),
        }
    }
}

fn flag(fields: &mut Map<String, Value>, name: &str) -> Result<bool, Error> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(value),
        Some(_) => Err(Error::invalid(format!("`{name}` is neither true nor false"))),
    }
}

/// A name in an error: enough to know it by.
fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}
