//! What is no text is described, not shown.

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::file::OpenFile;

/// The error for a file that is not text.
pub(super) fn binary(_cx: &Cx<'_>, file: &OpenFile) -> Error {
    let message = format!("{} is not text ({} bytes)", file.shown(), file.size());
    Error::new(ErrorKind::Binary, message)
        .hint("Its bytes are not shown. Only text can be read here.")
        .with("size", file.size())
}
