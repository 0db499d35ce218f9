//! The workspaces that the logs know.

use serde_json::{Value, json};
use toolcrib::OperatorLogs;

use crate::api_error::ApiError;

/// `GET /api/workspaces`: the most recent first.
pub(crate) fn list(logs: &OperatorLogs) -> Result<Value, ApiError> {
    let all = logs.workspaces()?.into_iter();
    let all = all.map(|(path, last)| json!({"path": path.to_string_lossy(), "last": last}));
    Ok(json!({"workspaces": all.collect::<Vec<_>>()}))
}
