//! Errors of calls: a kind for programs, a message and a hint for the model.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};
use toolcrib_fs::{FsError, FsErrorKind};
use toolcrib_text::{Secrets, truncate_line, visible_lines};

use crate::reply::{clip, mask_strings};

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
    Failed,
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
            ErrorKind::Failed => "failed",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Limit => "limit",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Io => "io",
            ErrorKind::Internal => "internal",
        }
    }
}

/// Error of a call, written for the model that made it.
///
/// ```
/// use toolcrib::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::NotFound, "there is no ticket 7").hint("Call ListTickets first.");
/// assert_eq!(error.kind().name(), "not_found");
/// assert_eq!(error.text(), "there is no ticket 7\nCall ListTickets first.");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    // Boxed, so that a `Result` is no larger than a pointer.
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
    /// Creates an error. `message` is a sentence that says what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (hint, detail) = (String::new(), String::new());
        let parts = Parts { kind, message: message.into(), hint, detail, metadata: Map::new() };
        Error { parts: Box::new(parts) }
    }

    /// The error for a path outside the workspace.
    pub(crate) fn outside(shown: &str) -> Self {
        Error::new(ErrorKind::OutsideWorkspace, format!("{shown} is outside the workspace"))
            .hint(OUTSIDE)
    }

    /// Creates an error of kind [`ErrorKind::Invalid`]: the arguments are wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, message)
    }

    /// Sets the hint, which says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.parts.hint = hint.into();
        self
    }

    /// Sets lines that follow the message, such as a part of the file or a list of candidates.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.parts.detail = detail.into();
        self
    }

    /// Adds a field to the metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.parts.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.parts.kind
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.parts.message
    }

    /// Returns the hint. May be empty.
    pub fn hint_text(&self) -> &str {
        &self.parts.hint
    }

    /// Returns the metadata, for programs.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.parts.metadata
    }

    /// Returns the text for the model: message, detail, hint.
    pub fn text(&self) -> String {
        [&self.parts.message, &self.parts.detail, &self.parts.hint]
            .into_iter()
            .map(|part| part.trim_end())
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Truncates the error to `chars` characters. The message and the hint take precedence over the detail.
    pub(crate) fn within(mut self, chars: usize) -> Self {
        let parts = &mut self.parts;
        parts.message = truncate_line(&visible_lines(&parts.message), chars / 4);
        parts.hint = truncate_line(&visible_lines(&parts.hint), chars / 4);
        let used = parts.message.chars().count() + parts.hint.chars().count() + 2;
        parts.detail = clip(&parts.detail, chars.saturating_sub(used), chars).0;
        self
    }

    /// Masks secrets.
    #[must_use]
    pub(crate) fn masked(mut self, secrets: &Secrets) -> Self {
        let parts = &mut self.parts;
        for text in [&mut parts.message, &mut parts.hint, &mut parts.detail] {
            if let Cow::Owned(masked) = secrets.mask(text) {
                *text = masked;
            }
        }
        parts.metadata.values_mut().for_each(|value| mask_strings(value, secrets));
        self
    }

    /// Prefixes the message with the item that it is about, and states that nothing was written.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.parts.message = format!("{what}: {}", self.parts.message);
        self.nothing_written()
    }

    /// States in the hint that nothing was written, unless the hint says so.
    pub(crate) fn nothing_written(mut self) -> Self {
        if !self.parts.hint.contains("Nothing was") {
            self.parts.hint = format!("Nothing was written. {}", self.parts.hint);
        }
        self
    }

    /// Converts an error of `toolcrib-fs`, about a path that the caller knows as `shown`.
    pub(crate) fn from_fs(shown: &str, error: &FsError) -> Self {
        let message = format!("{shown} {}", error.detail());
        let (kind, hint) = match error.kind() {
            FsErrorKind::Invalid => {
                return Error::invalid(error.detail()).hint(
                    "Give a path inside the workspace, relative to its directory or absolute.",
                );
            }
            FsErrorKind::Outside => (ErrorKind::OutsideWorkspace, OUTSIDE),
            FsErrorKind::Forbidden => (
                ErrorKind::Protected,
                "It belongs to the kernel, or it is another name of a place with keys, tokens or history.",
            ),
            FsErrorKind::NotFound => {
                (ErrorKind::NotFound, "Check the path; LS shows what is there.")
            }
            FsErrorKind::IsDirectory => (ErrorKind::IsDirectory, "LS lists a directory."),
            FsErrorKind::NotRegular => {
                (ErrorKind::NotRegular, "Only regular files can be read and written.")
            }
            FsErrorKind::TooLarge => (
                ErrorKind::TooLarge,
                "Read it in parts with offset and limit; it is too large to edit.",
            ),
            FsErrorKind::Permission => (
                ErrorKind::Permission,
                "The user that runs these tools may not do this; only the operator can change that.",
            ),
            FsErrorKind::ReadOnly => (
                ErrorKind::ReadOnly,
                "It is not meant to be changed. Make the change elsewhere, or ask the operator.",
            ),
            FsErrorKind::Stale => (
                ErrorKind::Stale,
                "Nothing was written. Read the file again, then make the change anew.",
            ),
            FsErrorKind::Busy => (
                ErrorKind::Conflict,
                "Nothing was written. Try again when the other process is done.",
            ),
            FsErrorKind::Unsettled => (
                ErrorKind::Io,
                "The change failed in its middle and could not be taken back: files may be changed. It is settled when these tools start again.",
            ),
            FsErrorKind::Unsupported => (ErrorKind::Unsupported, "Nothing was changed."),
            FsErrorKind::Io => {
                (ErrorKind::Io, "The system refused it; the name of the error tells why.")
            }
        };
        Error::new(kind, message).hint(hint)
    }
}

const OUTSIDE: &str = "Use a path inside the workspace, relative to its directory. The operator can open \
                       another directory with --root DIR, or DIR:ro for reading only.";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for Error {}
