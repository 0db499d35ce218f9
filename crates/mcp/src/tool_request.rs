//! A tool call from a client. Every call message is converted to this type before it is run.

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, InputResponses, RequestMetaObject};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The `_meta` key with which a client requests a dry run.
const DRY_RUN: &str = "toolcrib/dry_run";

/// A call, with the approval answers that accompany it.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) tool: String,
    /// The arguments in any form. The runtime checks them.
    pub(crate) arguments: Value,
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl Request {
    /// A call that the protocol's types could parse.
    pub(crate) fn typed(params: CallToolRequestParams) -> Self {
        Request {
            tool: params.name.into_owned(),
            arguments: Value::Object(params.arguments.unwrap_or_default()),
            responses: params.input_responses,
            state: params.request_state,
        }
    }

    /// A call that the protocol's types could not parse. `arguments` may be any value, because the runtime explains
    /// the expected form. The other fields must be valid.
    pub(crate) fn untyped(params: Option<Value>) -> Result<Self, ErrorData> {
        let Some(Value::Object(mut params)) = params else {
            return Err(invalid("params is not an object"));
        };
        if params.contains_key("_meta") {
            return Err(invalid("_meta is not valid for this protocol"));
        }
        Ok(Request {
            tool: field(&mut params, "name")?.ok_or_else(|| invalid("name is missing"))?,
            arguments: params.shift_remove("arguments").unwrap_or_default(),
            responses: field(&mut params, "inputResponses")?,
            state: field(&mut params, "requestState")?,
        })
    }
}

/// Whether the client requested a dry run. Fails for a value that is not a boolean: a call that was meant as a dry
/// run must not write.
pub(crate) fn wants_dry_run(meta: &RequestMetaObject) -> Result<bool, ErrorData> {
    match meta.get(DRY_RUN) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(dry_run)) => Ok(*dry_run),
        Some(_) => Err(invalid("_meta toolcrib/dry_run is not true or false")),
    }
}

fn field<T: DeserializeOwned>(
    params: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, ErrorData> {
    let value = params.shift_remove(name).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| invalid(&format!("{name}: {error}")))
}

fn invalid(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_arguments_may_have_any_form() {
        for arguments in [json!([1]), json!("{}"), json!(null), json!(7), json!(true)] {
            let params = json!({"name": "Undo", "arguments": arguments, "other": 1});
            let request = Request::untyped(Some(params)).unwrap();
            assert_eq!((request.tool.as_str(), request.arguments), ("Undo", arguments));
        }
        for params in [
            json!({"name": "Undo", "requestState": 5}),
            json!({"name": "Undo", "inputResponses": []}),
            json!({"name": "Undo", "_meta": 5}),
            json!({"name": ["Undo"]}),
            json!({"name": null}),
            json!({}),
            json!(["Undo"]),
        ] {
            assert!(Request::untyped(Some(params.clone())).is_err(), "{params}");
        }
        assert!(Request::untyped(None).is_err());
    }

    #[test]
    fn only_the_value_true_requests_a_dry_run() {
        let wants = |value: Value| {
            let mut meta = RequestMetaObject::default();
            meta.insert(DRY_RUN.to_owned(), value);
            wants_dry_run(&meta)
        };
        assert_eq!(wants(json!(true)), Ok(true));
        assert_eq!(wants(json!(false)), Ok(false));
        assert_eq!(wants_dry_run(&RequestMetaObject::default()), Ok(false));
        for value in [json!("true"), json!(1), json!([true]), json!({})] {
            assert!(wants(value.clone()).is_err(), "{value}");
        }
    }
}
