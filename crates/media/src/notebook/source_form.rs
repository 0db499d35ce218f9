//! A source as JSON, in one of the two forms of the format.

use super::json;
use super::object::Object;
use super::whitespace::Layout;

/// The form of a source: a string, or a list of lines.
pub(super) enum SourceForm {
    String,
    List(Layout),
}

impl SourceForm {
    /// The form of an existing source.
    pub(super) fn of(object: &Object, key: &str) -> Option<SourceForm> {
        let source = object.get(key)?;
        match source.as_bytes().first()? {
            b'"' => Some(SourceForm::String),
            b'[' => Some(match Layout::of_list(source, object.colon()) {
                Some(layout) => SourceForm::List(layout),
                None => SourceForm::new(object),
            }),
            _ => None,
        }
    }

    /// The form that Jupyter writes.
    pub(super) fn new(object: &Object) -> SourceForm {
        SourceForm::List(object.layout().deeper())
    }

    pub(super) fn write(&self, source: &str, ascii: bool) -> String {
        match self {
            SourceForm::String => json::quote(source, ascii),
            SourceForm::List(layout) => {
                let lines = source.split_inclusive('\n').map(|line| json::quote(line, ascii));
                layout.list(&lines.collect::<Vec<_>>())
            }
        }
    }
}
