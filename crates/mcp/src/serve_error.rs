//! The error of a server that cannot serve.

use std::fmt;

/// Serving failed.
#[derive(Debug)]
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(error: &dyn fmt::Display) -> Self {
        ServeError(format!("cannot serve: {error}"))
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}
