//! Messages to a server.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client_settings::ClientSettings;
use crate::file_uri::file_uri;
use crate::frame::frame;

/// A request with an id of ours.
pub(crate) fn request(id: i64, method: &str, params: &Value) -> Vec<u8> {
    framed(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    framed(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// A notification or request without parameters.
pub(crate) fn without_params(id: Option<i64>, method: &str) -> Vec<u8> {
    match id {
        Some(id) => framed(&json!({"jsonrpc": "2.0", "id": id, "method": method})),
        None => framed(&json!({"jsonrpc": "2.0", "method": method})),
    }
}

/// The answer to a request of the server: a result, or the code and text of an error.
pub(crate) fn response(id: &RawValue, answer: &Result<Value, (i64, &str)>) -> Vec<u8> {
    let outcome = match answer {
        Ok(result) => json!({"result": result}),
        Err((code, message)) => json!({"error": {"code": code, "message": message}}),
    };
    let outcome = outcome.to_string();
    let fields = outcome.strip_prefix('{').unwrap_or_default();
    // The id is sent back as it was written.
    frame(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{fields}", id.get()).as_bytes())
}

/// The parameters of `initialize`. The client claims only what it does.
pub(crate) fn initialize_params(settings: &ClientSettings) -> Value {
    let root = file_uri(&settings.root);
    let name = settings.root.file_name().map_or("workspace".into(), |name| name.to_string_lossy());
    json!({
        // The server runs in its own PID namespace, where this number would be another process.
        "processId": null,
        "clientInfo": {"name": "toolcrib", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": root,
        "rootPath": settings.root.to_string_lossy(),
        "workspaceFolders": [{"uri": root, "name": name}],
        "initializationOptions": settings.options,
        "capabilities": {
            // Only lines are used, which are the same in both.
            "general": {"positionEncodings": ["utf-8", "utf-16"]},
            "textDocument": {
                "synchronization": {"dynamicRegistration": false},
                "diagnostic": {"dynamicRegistration": false, "relatedDocumentSupport": false},
                "publishDiagnostics": {"versionSupport": true},
            },
            "workspace": {
                "workspaceFolders": true,
                "configuration": false,
                "didChangeWatchedFiles": {"dynamicRegistration": true},
                "diagnostics": {"refreshSupport": true},
            },
            "window": {"workDoneProgress": false},
            "experimental": {"serverStatusNotification": true},
        },
    })
}

fn framed(message: &Value) -> Vec<u8> {
    frame(message.to_string().as_bytes())
}
