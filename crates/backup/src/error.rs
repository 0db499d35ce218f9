//! Why a backup could not be made or read. No message has a secret.

use std::fmt;

use toolcrib::visible_name;

/// Characters of a message of the server.
const MAX_CHARS: usize = 300;

/// An error of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupError {
    kind: BackupErrorKind,
    message: String,
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupErrorKind {
    /// The settings are wrong: nothing was sent.
    Settings,
    /// The server cannot be reached, or is busy. The same request may succeed later.
    Network,
    /// The server refuses the request.
    Refused,
    /// Another machine has continued the backup, or it is one of another workspace.
    Foreign,
    /// Something in the backup is missing or has another content.
    Damaged,
    /// The workspace or the state directory cannot be used.
    Local,
}

impl BackupError {
    pub(crate) fn new(kind: BackupErrorKind, message: impl Into<String>) -> BackupError {
        BackupError { kind, message: message.into() }
    }

    pub(crate) fn settings(message: impl Into<String>) -> BackupError {
        BackupError::new(BackupErrorKind::Settings, message)
    }

    pub(crate) fn network(message: impl Into<String>) -> BackupError {
        BackupError::new(BackupErrorKind::Network, message)
    }

    pub(crate) fn damaged(message: impl Into<String>) -> BackupError {
        BackupError::new(BackupErrorKind::Damaged, message)
    }

    pub(crate) fn local(error: impl fmt::Display) -> BackupError {
        BackupError::new(BackupErrorKind::Local, error.to_string())
    }

    /// An error that the server has sent. Its text is untrusted.
    pub(crate) fn of_server(kind: BackupErrorKind, status: u16, body: &[u8]) -> BackupError {
        let text = |name: &str| {
            let text = crate::xml_text::element(body, name)?;
            let short: String = text.chars().take(MAX_CHARS).collect();
            Some(visible_name(short.as_bytes()))
        };
        let said = match (text("Code"), text("Message")) {
            (Some(code), Some(message)) => format!(": {code}: {message}"),
            (Some(one), None) | (None, Some(one)) => format!(": {one}"),
            (None, None) => String::new(),
        };
        BackupError::new(kind, format!("the server answers with status {status}{said}"))
    }

    /// The kind.
    pub fn kind(&self) -> BackupErrorKind {
        self.kind
    }

    /// The same error with words before it.
    #[must_use]
    pub(crate) fn about(self, what: &str) -> BackupError {
        BackupError { message: format!("{what}: {}", self.message), ..self }
    }
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BackupError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_server_are_bounded_and_visible() {
        let body = format!(
            "<Error><Code>X\u{1b}[1m</Code><Message>{}</Message></Error>",
            "y".repeat(9_000)
        );
        let error = BackupError::of_server(BackupErrorKind::Refused, 403, body.as_bytes());
        let said = error.to_string();
        assert!(said.starts_with("the server answers with status 403: X"), "{said}");
        assert!(said.chars().count() < 400 && !said.contains('\u{1b}'), "{said}");
        let empty = BackupError::of_server(BackupErrorKind::Network, 500, b"");
        assert_eq!(empty.to_string(), "the server answers with status 500");
    }
}
