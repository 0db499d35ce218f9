//! The error of a request to the API.

use hyper::StatusCode;
use serde_json::{Value, json};
use toolcrib::{Error, ErrorKind};

/// An error, with the status of its response.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// How a question was settled before.
    pub(crate) settled: Option<Value>,
}

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        kind: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError { status, kind, message: message.into(), settled: None }
    }

    /// A request that no server can answer.
    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "conflict", message)
    }

    pub(crate) fn io(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "io", message)
    }

    /// The body of the response.
    pub(crate) fn body(&self) -> Value {
        let mut error = json!({"kind": self.kind, "message": self.message});
        if let Some(settled) = &self.settled {
            error["settled"] = settled.clone();
        }
        json!({"error": error})
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        let status = match error.kind() {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Invalid | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
            ErrorKind::Denied | ErrorKind::Protected => StatusCode::FORBIDDEN,
            ErrorKind::Conflict | ErrorKind::AlreadyApplied | ErrorKind::Stale => {
                StatusCode::CONFLICT
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        ApiError::new(status, error.kind().name(), error.text())
    }
}
