//! Decodes a message of `toolcrib run`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolcrib::{Call, Cancel, Error};

use super::frame::Frame;
use super::operation::Operation;

/// A decoded message.
pub(super) enum Message {
    Call(Request),
    Operation(OperationRequest),
    Approve(Approve),
    /// The result of a call that the calling program performed.
    Invoked(Invoked),
    /// The id of the call to cancel.
    Cancel(Value),
}

/// A call with its options.
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) call: Call,
    pub(super) wait: bool,
    pub(super) dry_run: bool,
    /// Whether progress is reported.
    pub(super) progress: bool,
    pub(super) cancel: Arc<Cancel>,
}

/// A raw operation.
pub(super) struct OperationRequest {
    pub(super) id: Value,
    pub(super) operation: Operation,
    pub(super) cancel: Arc<Cancel>,
}

/// The result of a call that the calling program performed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Invoked {
    pub(super) invoked: String,
    pub(super) success: bool,
    #[serde(default)]
    pub(super) output: String,
}

/// An answer to a question.
pub(super) struct Approve {
    pub(super) id: String,
    pub(super) answer: String,
    pub(super) message: String,
}

const SHAPE: &str = r#"A line is {"id": …, "tool": "Read", "args": {…}}, with "wait": true or "dry_run": true if needed."#;

const OPERATION_SHAPE: &str = r#"A line is {"id": …, "op": "read", "args": {…}}."#;

const APPROVE_SHAPE: &str = r#"An answer is {"approve": "a1", "answer": "yes"}, with "message": "…" for the agent if it is no."#;

const INVOKED_SHAPE: &str = r#"A result is {"invoked": "i1", "success": true, "output": "…"}."#;

/// Maximum characters of a message to the agent.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// A message that cannot be decoded: the field that identifies it, the value of that field, and the error.
pub(super) type RequestError = (&'static str, Value, Error);

impl Message {
    /// Decodes a message. An error comes with the id, if the message has one.
    pub(super) fn decode(Frame { mut fields, payload }: Frame) -> Result<Message, RequestError> {
        if let Some(name) = fields.shift_remove("op") {
            let id = fields.shift_remove("id").unwrap_or_default();
            return OperationRequest::decode(id.clone(), &name, fields, payload)
                .map(Message::Operation)
                .map_err(|error| {
                    (
                        "id",
                        id,
                        if error.hint_text().is_empty() {
                            error.hint(OPERATION_SHAPE)
                        } else {
                            error
                        },
                    )
                });
        }
        if payload.is_some() {
            let id = fields.shift_remove("id").unwrap_or_default();
            let error = Error::invalid("only an operation has `bytes`").hint(OPERATION_SHAPE);
            return Err(("id", id, error));
        }
        if let Some(id) = fields.get("invoked").cloned() {
            let result = serde_json::from_value(Value::Object(fields));
            let invalid = |error: serde_json::Error| {
                ("invoked", id, Error::invalid(error.to_string()).hint(INVOKED_SHAPE))
            };
            return result.map(Message::Invoked).map_err(invalid);
        }
        match fields.shift_remove("approve") {
            Some(id) => Approve::from_fields(&id, fields)
                .map(Message::Approve)
                .map_err(|error| ("approve", id, error.hint(APPROVE_SHAPE))),
            None => Message::from_fields(fields),
        }
    }

    fn from_fields(mut fields: Map<String, Value>) -> Result<Message, RequestError> {
        if let Some(cancel) = fields.shift_remove("cancel") {
            return match unknown_field(&fields) {
                Ok(()) => Ok(Message::Cancel(cancel)),
                Err(error) => Err(("cancel", cancel, error.hint(r#"A line is {"cancel": ID}."#))),
            };
        }
        let id = fields.shift_remove("id").unwrap_or_default();
        match Request::from_fields(id.clone(), fields) {
            Ok(request) => Ok(Message::Call(request)),
            Err(error) => Err(("id", id, error.hint(SHAPE))),
        }
    }
}

impl Request {
    fn from_fields(id: Value, mut fields: Map<String, Value>) -> Result<Request, Error> {
        let tool = match fields.shift_remove("tool") {
            Some(Value::String(tool)) => tool,
            Some(_) => return Err(Error::invalid("`tool` is not a string")),
            None => return Err(Error::invalid("`tool` is missing")),
        };
        let args = fields.shift_remove("args").unwrap_or_default();
        let wait = flag(&mut fields, "wait")?;
        let dry_run = flag(&mut fields, "dry_run")?;
        let progress = flag(&mut fields, "progress")?;
        unknown_field(&fields)?;
        let (call, cancel) = (Call::new(tool, args), Arc::default());
        Ok(Request { id, call, wait, dry_run, progress, cancel })
    }
}

impl OperationRequest {
    fn decode(
        id: Value,
        name: &Value,
        mut fields: Map<String, Value>,
        payload: Option<Vec<u8>>,
    ) -> Result<OperationRequest, Error> {
        let name = name.as_str().ok_or_else(|| Error::invalid("`op` is not a string"))?;
        let args = fields.shift_remove("args").unwrap_or_default();
        unknown_field(&fields)?;
        let operation = Operation::decode(name, args, payload)?;
        Ok(OperationRequest { id, operation, cancel: Arc::default() })
    }
}

impl Approve {
    fn from_fields(id: &Value, mut fields: Map<String, Value>) -> Result<Approve, Error> {
        let Value::String(id) = id else { return Err(Error::invalid("`approve` is not a string")) };
        let mut text = |name: &str| match fields.shift_remove(name) {
            Some(Value::String(text)) => Ok(Some(text)),
            None | Some(Value::Null) => Ok(None),
            Some(_) => Err(Error::invalid(format!("`{name}` is not a string"))),
        };
        let answer = text("answer")?.ok_or_else(|| Error::invalid("`answer` is missing"))?;
        let message = text("message")?.unwrap_or_default();
        unknown_field(&fields)?;
        let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
        Ok(Approve { id: id.clone(), answer, message })
    }
}

fn unknown_field(fields: &Map<String, Value>) -> Result<(), Error> {
    match fields.keys().next() {
        Some(name) => Err(Error::invalid(format!("unknown field `{}`", shown(name)))),
        None => Ok(()),
    }
}

fn flag(fields: &mut Map<String, Value>, name: &str) -> Result<bool, Error> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(value),
        Some(_) => Err(Error::invalid(format!("`{name}` must be true or false"))),
    }
}

/// A field name, truncated for an error message.
fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}
