//! The one JSON form of a reply, the same for every tool and every door that speaks JSON. It is
//! stable: fields may come, none goes or changes its meaning.

use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::reply::Reply;

/// The outcome of a call as one JSON object.
pub fn to_json(outcome: &Result<Reply, Error>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("success".into(), outcome.is_ok().into());
    match outcome {
        Ok(reply) => {
            object.insert("output".into(), reply.text().into());
            object.insert("metadata".into(), reply.metadata().clone().into());
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
