//! What a client tells a server at the start.

use std::path::PathBuf;

use serde_json::Value;

/// What the client tells a server at the start.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The directory of the project.
    pub root: PathBuf,
    /// Options of this server.
    pub options: Value,
    /// Whether answers count only after the server has said that it has loaded the project.
    pub waits_for_quiescence: bool,
}

impl ClientSettings {
    /// Settings for a server without options.
    pub fn new(root: impl Into<PathBuf>) -> ClientSettings {
        ClientSettings { root: root.into(), options: Value::Null, waits_for_quiescence: false }
    }
}
