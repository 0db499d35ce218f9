//! A source as JSON, in one of the two forms of the format.

use super::json;
use super::object::Object;
use super::whitespace::Frame;

/// The form of a source: a string, or a list of lines.
pub(super) enum Form {
    String,
    List(Frame),
}

impl Form {
    /// The form of an existing source.
    pub(super) fn of(object: &Object, key: &str) -> Option<Form> {
        let source = object.get(key)?;
        match source.as_bytes().first()? {
            b'"' => Some(Form::String),
            b'[' => Some(match Frame::of_list(source, object.colon()) {
                Some(frame) => Form::List(frame),
                None => Form::new(object),
            }),
            _ => None,
        }
    }

    /// The form that Jupyter writes.
    pub(super) fn new(object: &Object) -> Form {
        Form::List(object.frame().deeper())
    }

    pub(super) fn write(&self, source: &str, ascii: bool) -> String {
        match self {
            Form::String => json::quote(source, ascii),
            Form::List(frame) => {
                let lines = source.split_inclusive('\n').map(|line| json::quote(line, ascii));
                frame.list(&lines.collect::<Vec<_>>())
            }
        }
    }
}
