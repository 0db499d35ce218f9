//! Why the store could not do something. No message has a password or a connection string.

use std::fmt;

use toolcrib::visible_name;

/// Characters of a message of the server.
const MAX_CHARS: usize = 300;

/// An error of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
}

/// The kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The settings are wrong: nothing was sent.
    Settings,
    /// There is no connection, or it was lost. Sent statements may have arrived.
    Connection,
    /// The server refused a statement, with this code. The statement did nothing.
    Refused(String),
    /// The local log or state cannot be used.
    Local,
}

impl StoreError {
    pub(crate) fn settings(message: impl Into<String>) -> StoreError {
        StoreError { kind: StoreErrorKind::Settings, message: message.into() }
    }

    pub(crate) fn connection(message: impl Into<String>) -> StoreError {
        StoreError { kind: StoreErrorKind::Connection, message: message.into() }
    }

    pub(crate) fn local(message: impl fmt::Display) -> StoreError {
        StoreError { kind: StoreErrorKind::Local, message: message.to_string() }
    }

    /// An error that the server has sent. Its text is untrusted.
    pub(crate) fn refused(code: &[u8], text: &[u8]) -> StoreError {
        let code = String::from_utf8_lossy(&code[..code.len().min(5)]);
        let code: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        let text = String::from_utf8_lossy(text);
        let text: String = text.chars().take(MAX_CHARS).collect();
        let message = format!("the server says: {} ({code})", visible_name(text.as_bytes()));
        StoreError { kind: StoreErrorKind::Refused(code), message }
    }

    /// The kind.
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }

    /// Whether the server refused it with this code.
    pub fn has_code(&self, wanted: &str) -> bool {
        matches!(&self.kind, StoreErrorKind::Refused(code) if code == wanted)
    }

    /// Whether the connection cannot be used any more.
    pub(crate) fn ends_connection(&self) -> bool {
        match &self.kind {
            // The server shuts down, or has crashed.
            StoreErrorKind::Refused(code) => code.starts_with("57P"),
            StoreErrorKind::Connection => true,
            StoreErrorKind::Settings | StoreErrorKind::Local => false,
        }
    }

    /// The same error with words before it.
    #[must_use]
    pub(crate) fn about(self, what: &str) -> StoreError {
        StoreError { message: format!("{what}: {}", self.message), ..self }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_server_are_bounded_and_visible() {
        let text = format!("a\u{1b}[31m\n{}", "x".repeat(5_000));
        let error = StoreError::refused(b"42501\n\x1b", text.as_bytes());
        assert!(error.has_code("42501") && !error.ends_connection());
        let said = error.to_string();
        assert!(said.chars().count() < 400 && !said.contains(['\u{1b}', '\n']), "{said}");
        assert!(StoreError::refused(b"57P01", b"").ends_connection());
    }
}
