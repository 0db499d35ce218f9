//! The JSON form of a reply, the same for all tools and transports. It is stable: fields may be added; none is
//! removed or changes its meaning.

use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::reply::{Picture, Reply};

/// Converts the result of a call to a JSON object: `success`, `output`, `metadata`, `content` (images) and
/// `error`.
pub fn to_json(outcome: &Result<Reply, Error>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("success".into(), outcome.is_ok().into());
    match outcome {
        Ok(reply) => {
            object.insert("output".into(), reply.text().into());
            object.insert("metadata".into(), reply.metadata().clone().into());
            if !reply.pictures().is_empty() {
                let content: Vec<Value> = reply.pictures().iter().map(picture).collect();
                object.insert("content".into(), content.into());
            }
        }
        Err(error) => {
            let parts = json!({
                "kind": error.kind().name(),
                "message": error.message(),
                "hint": error.hint_text(),
            });
            object.insert("error".into(), parts);
            object.insert("output".into(), error.text().into());
            object.insert("metadata".into(), error.metadata().clone().into());
        }
    }
    object
}

/// An image in MCP's form.
fn picture(picture: &Picture) -> Value {
    json!({"type": "image", "mimeType": picture.media_type, "data": picture.base64()})
}
