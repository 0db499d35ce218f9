//! What a call answers when it could not do what was asked: a kind to branch on, a sentence to read,
//! a hint to act on.

use std::fmt;

use serde_json::{Map, Value};
use toolcrib_fs::{FsError, FsErrorKind};

/// What went wrong. The list is closed: callers branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the contract, and `name` spells them")]
pub enum ErrorKind {
    Invalid,
    OutsideWorkspace,
    Protected,
    Denied,
    NotFound,
    IsDirectory,
    NotRegular,
    Binary,
    TooLarge,
    Permission,
    ReadOnly,
    Stale,
    NoMatch,
    Ambiguous,
    AlreadyApplied,
    Conflict,
    Timeout,
    Cancelled,
    Limit,
    Unsupported,
    Io,
    Internal,
}

impl ErrorKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::OutsideWorkspace => "outside_workspace",
            ErrorKind::Protected => "protected",
            ErrorKind::Denied => "denied",
            ErrorKind::NotFound => "not_found",
            ErrorKind::IsDirectory => "is_directory",
            ErrorKind::NotRegular => "not_regular",
            ErrorKind::Binary => "binary",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::Permission => "permission",
            ErrorKind::ReadOnly => "read_only",
            ErrorKind::Stale => "stale",
            ErrorKind::NoMatch => "no_match",
            ErrorKind::Ambiguous => "ambiguous",
            ErrorKind::AlreadyApplied => "already_applied",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Limit => "limit",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Io => "io",
            ErrorKind::Internal => "internal",
        }
    }
}

/// An error for the model that made the call.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    // Boxed, so that a `Result` costs its callers no more than a pointer.
    parts: Box<Parts>,
}

#[derive(Debug, Clone, PartialEq)]
struct Parts {
    kind: ErrorKind,
    message: String,
    hint: String,
    detail: String,
    metadata: Map<String, Value>,
}

impl Error {
    /// An error with what happened, in a sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (hint, detail) = (String::new(), String::new());
        let parts = Parts { kind, message: message.into(), hint, detail, metadata: Map::new() };
        Error { parts: Box::new(parts) }
    }

    /// The caller's own mistake.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, message)
    }

    /// What to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.parts.hint = hint.into();
        self
    }

    /// Lines to look at: the place in the file, the candidates.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.parts.detail = detail.into();
        self
    }

    /// A fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.parts.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.parts.kind
    }

    /// What happened, in a sentence.
    pub fn message(&self) -> &str {
        &self.parts.message
    }

    /// What to do next; may be empty.
    pub fn hint_text(&self) -> &str {
        &self.parts.hint
    }

    /// Facts for programs.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.parts.metadata
    }

    /// All of it as the model reads it: message, lines to look at, hint.
    pub fn text(&self) -> String {
        [&self.parts.message, &self.parts.detail, &self.parts.hint]
            .into_iter()
            .map(|part| part.trim_end())
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) fn map_text(mut self, clip: impl Fn(&str) -> String) -> Self {
        self.parts.message = clip(&self.parts.message);
        self.parts.detail = clip(&self.parts.detail);
        self
    }

    /// An error of the file leaf, about a file that the caller knows as `shown`.
    pub(crate) fn from_fs(shown: &str, error: &FsError) -> Self {
        let message = format!("{shown} {}", error.detail());
        match error.kind() {
            FsErrorKind::Invalid => Error::invalid(error.detail()),
            FsErrorKind::Outside => Error::new(ErrorKind::OutsideWorkspace, message)
                .hint("Use a path inside the workspace, relative to its directory."),
            FsErrorKind::NotFound => Error::new(ErrorKind::NotFound, message),
            FsErrorKind::IsDirectory => Error::new(ErrorKind::IsDirectory, message),
            FsErrorKind::NotRegular => Error::new(ErrorKind::NotRegular, message)
                .hint("Only regular files can be read and written."),
            FsErrorKind::TooLarge => Error::new(ErrorKind::TooLarge, message),
            FsErrorKind::Permission => Error::new(ErrorKind::Permission, message),
            FsErrorKind::ReadOnly => Error::new(ErrorKind::ReadOnly, message),
            FsErrorKind::Stale => Error::new(ErrorKind::Stale, message)
                .hint("Nothing was written. Read the file again, then make the change anew."),
            FsErrorKind::Io => Error::new(ErrorKind::Io, message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for Error {}
