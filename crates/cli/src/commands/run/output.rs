//! Writes the messages of `toolcrib run`.

use std::io;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::frame;

/// Stdout, one message at a time.
pub(super) struct Output {
    /// Whether every message could be written.
    all_written: Mutex<bool>,
}

impl Output {
    pub(super) fn new() -> Output {
        Output { all_written: Mutex::new(true) }
    }

    pub(super) fn all_written(&self) -> bool {
        *self.all_written.lock()
    }

    /// Writes a message about a request. Returns whether that succeeded.
    pub(super) fn write_about(&self, id: &Value, fields: Value, payload: Option<&[u8]>) -> bool {
        let mut message = Map::from_iter([("id".to_owned(), id.clone())]);
        if let Value::Object(fields) = fields {
            message.extend(fields);
        }
        self.write(message, payload)
    }

    /// Writes a message. Returns whether that succeeded.
    pub(super) fn write(&self, fields: Map<String, Value>, payload: Option<&[u8]>) -> bool {
        let mut all_written = self.all_written.lock();
        let is_written = frame::write(&mut io::stdout(), fields, payload).is_ok();
        *all_written &= is_written;
        is_written
    }
}
