//! Answers to the requests of a server: the client changes nothing and shows nothing.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::incoming::parsed;

/// The code of the protocol for a method that the client does not have.
const METHOD_NOT_FOUND: i64 = -32601;

/// Sections of a configuration that are answered.
const MAX_SECTIONS: usize = 1_000;

#[derive(Deserialize)]
struct ConfigurationParams {
    items: Vec<IgnoredAny>,
}

/// The result, or the code and text of an error.
pub(crate) fn answer(
    method: &str,
    params: Option<&RawValue>,
) -> Result<Value, (i64, &'static str)> {
    match method {
        // One value for each section: not set.
        "workspace/configuration" => {
            let items =
                parsed::<ConfigurationParams>(params).map_or(0, |params| params.items.len());
            Ok(vec![Value::Null; items.min(MAX_SECTIONS)].into())
        }
        "workspace/workspaceFolders"
        | "client/registerCapability"
        | "client/unregisterCapability"
        | "window/workDoneProgress/create"
        | "window/showMessageRequest"
        | "workspace/diagnostic/refresh" => Ok(Value::Null),
        "workspace/applyEdit" => Ok(json!({"applied": false})),
        "window/showDocument" => Ok(json!({"success": false})),
        _ => Err((METHOD_NOT_FOUND, "the client does not have this method")),
    }
}
