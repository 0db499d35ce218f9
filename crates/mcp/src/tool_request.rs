//! A tool call from a client. Every call message is converted to this type before it is run.

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, InputResponses, RequestMetaObject};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The `_meta` key with which a client requests a dry run.
const DRY_RUN: &str = "toolcrib/dry_run";

/// The `_meta` key with which a client requests the metadata of the reply. Some clients show `_meta` of results to the
/// model, so it is not sent otherwise.
const METADATA: &str = "toolcrib/metadata";

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

/// What a client requests in `_meta` of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct CallOptions {
    pub(crate) dry_run: bool,
    /// Sends the metadata of the reply.
    pub(crate) metadata: bool,
}

impl CallOptions {
    /// Fails for a value that is not a boolean: a call that was meant as a dry run must not write.
    pub(crate) fn of(meta: &RequestMetaObject) -> Result<Self, ErrorData> {
        let flag = |key: &str| match meta.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(_) => Err(invalid(&format!("_meta {key} is not true or false"))),
        };
        Ok(CallOptions { dry_run: flag(DRY_RUN)?, metadata: flag(METADATA)? })
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
    fn only_the_value_true_requests_an_option() {
        let options = |key: &str, value: Value| {
            let mut meta = RequestMetaObject::default();
            meta.insert(key.to_owned(), value);
            CallOptions::of(&meta)
        };
        let expected = |dry_run, metadata| Ok(CallOptions { dry_run, metadata });
        assert_eq!(options(DRY_RUN, json!(true)), expected(true, false));
        assert_eq!(options(METADATA, json!(true)), expected(false, true));
        assert_eq!(CallOptions::of(&RequestMetaObject::default()), expected(false, false));
        for key in [DRY_RUN, METADATA] {
            assert_eq!(options(key, json!(false)), expected(false, false));
            for value in [json!("true"), json!(1), json!([true]), json!({})] {
                assert!(options(key, value.clone()).is_err(), "{key} {value}");
            }
        }
    }
}
