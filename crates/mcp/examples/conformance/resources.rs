//! Resources: two static ones, one that is watched, and a template.

use serde_json::{Value, json};

use crate::contents::pixel;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

/// The text around the variable part of a template's address.
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// The list.
pub(crate) fn list() -> Value {
    let resource = |uri: &str, media_type: &str| {
        let description = "For the conformance suite.";
        json!({"uri": uri, "name": uri, "description": description, "mimeType": media_type})
    };
    json!({"resources": [
        resource(TEXT, "text/plain"),
        resource(BINARY, "image/png"),
        resource(WATCHED, "text/plain"),
    ]})
}

/// The list of templates.
pub(crate) fn templates() -> Value {
    let (before, after) = TEMPLATE;
    json!({"resourceTemplates": [{
        "uriTemplate": format!("{before}{{id}}{after}"),
        "name": "template",
        "description": "For the conformance suite.",
        "mimeType": "application/json",
    }]})
}

/// The content of a resource. `None` if it does not exist.
pub(crate) fn read(uri: &str) -> Option<Value> {
    let (before, after) = TEMPLATE;
    let contents = match uri {
        TEXT => json!({"uri": uri, "mimeType": "text/plain", "text": "A text that stays."}),
        WATCHED => json!({"uri": uri, "mimeType": "text/plain", "text": "A text to watch."}),
        BINARY => json!({"uri": uri, "mimeType": "image/png", "blob": pixel()}),
        _ => {
            let id = uri.strip_prefix(before)?.strip_suffix(after)?;
            let text = json!({"id": id, "data": format!("Data of {id}")}).to_string();
            json!({"uri": uri, "mimeType": "application/json", "text": text})
        }
    };
    Some(json!({"contents": [contents]}))
}
