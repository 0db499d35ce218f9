//! Errors of operations, in the words of both protocols.

use hyper::StatusCode;
use tonic::Code;
use toolcrib::{Error, ErrorKind};

/// The longest text of an error. In gRPC it is a header, of which clients accept few bytes.
const MAX_TEXT_BYTES: usize = 2_048;

/// An error of a REST request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl RestError {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> RestError {
        RestError { status, code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> RestError {
        RestError::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message)
    }

    /// A path that leads out of the workspace.
    pub(crate) fn escapes() -> RestError {
        let message = "the path leads out of the workspace";
        RestError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", message)
    }

    /// An error in this program.
    pub(crate) fn internal() -> RestError {
        let message = "the request failed by an error in this program";
        RestError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
    }
}

impl From<Error> for RestError {
    fn from(error: Error) -> RestError {
        let (status, code) = match error.kind() {
            ErrorKind::OutsideWorkspace
            | ErrorKind::Protected
            | ErrorKind::Denied
            | ErrorKind::Permission
            | ErrorKind::ReadOnly => (StatusCode::FORBIDDEN, "PERMISSION_DENIED"),
            ErrorKind::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            ErrorKind::Invalid
            | ErrorKind::IsDirectory
            | ErrorKind::NotADirectory
            | ErrorKind::NotRegular
            | ErrorKind::Unsupported => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
            ErrorKind::NotEmpty | ErrorKind::Exists | ErrorKind::Stale | ErrorKind::Conflict => {
                (StatusCode::CONFLICT, "CONFLICT")
            }
            ErrorKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RESOURCE_EXHAUSTED"),
            ErrorKind::Limit => (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
        };
        RestError::new(status, code, text(&error))
    }
}

/// The status of a gRPC request.
pub(crate) fn grpc_status(error: &Error) -> tonic::Status {
    let code = match error.kind() {
        ErrorKind::OutsideWorkspace
        | ErrorKind::Protected
        | ErrorKind::Denied
        | ErrorKind::Permission
        | ErrorKind::ReadOnly => Code::PermissionDenied,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Invalid | ErrorKind::NotADirectory => Code::InvalidArgument,
        ErrorKind::TooLarge | ErrorKind::Limit => Code::ResourceExhausted,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::Unsupported => Code::Unimplemented,
        _ => Code::Internal,
    };
    tonic::Status::new(code, text(error))
}

fn text(error: &Error) -> String {
    let mut text = error.text();
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_meaning_in_both_protocols() {
        for (kind, status, code, grpc) in [
            (ErrorKind::NotFound, 404, "NOT_FOUND", Code::NotFound),
            (ErrorKind::OutsideWorkspace, 403, "PERMISSION_DENIED", Code::PermissionDenied),
            (ErrorKind::Denied, 403, "PERMISSION_DENIED", Code::PermissionDenied),
            (ErrorKind::NotEmpty, 409, "CONFLICT", Code::Internal),
            (ErrorKind::IsDirectory, 400, "INVALID_ARGUMENT", Code::Internal),
            (ErrorKind::Limit, 429, "RESOURCE_EXHAUSTED", Code::ResourceExhausted),
            (ErrorKind::Io, 500, "INTERNAL", Code::Internal),
        ] {
            let error = Error::new(kind, "what happened");
            assert_eq!(grpc_status(&error).code(), grpc, "{kind:?}");
            let rest = RestError::from(error);
            assert_eq!((rest.status.as_u16(), rest.code), (status, code), "{kind:?}");
            assert_eq!(rest.message, "what happened");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let error = Error::new(ErrorKind::Io, "ä".repeat(5_000));
        assert_eq!(grpc_status(&error).message().len(), MAX_TEXT_BYTES + "…".len());
    }
}
