//! Errors of calls: a kind for programs, a message and a hint for the model.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};
use toolcrib_fs::{FsError, FsErrorKind};
use toolcrib_text::{Secrets, truncate_line, visible_lines};

use crate::dialect::{Dialect, with_arguments};
use crate::message_names::{self, LS, READ};
use crate::reply::{clip, mask_strings};

/// The kinds of errors: each with its name on the wire and its meaning, in one table.
macro_rules! error_kinds {
    ($($kind:ident, $name:literal, $meaning:literal;)*) => {
        /// What went wrong. The list is closed: callers branch on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),*];

            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $name,)*
                }
            }

            /// Its meaning, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(ErrorKind::$kind => $meaning,)*
                }
            }
        }
    };
}

error_kinds! {
    Invalid, "invalid", "The arguments are invalid.";
    OutsideWorkspace, "outside_workspace", "The path is outside the workspace and may not be used.";
    Protected, "protected", "The path is protected or hidden.";
    Denied, "denied", "The policy or the user did not allow the call.";
    NotFound, "not_found", "The file, directory, job or change does not exist.";
    IsDirectory, "is_directory", "The path names a directory; a file was expected.";
    NotADirectory, "not_a_directory", "The path names a file; a directory was expected.";
    Exists, "already_exists", "A file or directory with this path exists.";
    NotEmpty, "not_empty", "The directory is not empty.";
    NotRegular, "not_regular", "The path names a device, socket, FIFO or other special file.";
    Binary, "binary", "The file is not text.";
    TooLarge, "too_large", "A file or an argument exceeds a size limit.";
    Permission, "permission", "The operating system denies access.";
    ReadOnly, "read_only", "The root or file system is read-only.";
    Stale, "stale", "The file changed since the session read it, or since the given hash.";
    NoMatch, "no_match", "The text, hunk or cell to change was not found.";
    Ambiguous, "ambiguous", "The text or hunk was found in several places.";
    AlreadyApplied, "already_applied", "The change was already made.";
    Conflict, "conflict", "Existing content or another change conflicts.";
    Failed, "failed", "The command ended with an exit code or signal that means failure.";
    Timeout, "timeout", "The command or the call took too long.";
    Cancelled, "cancelled", "The client cancelled the call.";
    Limit, "limit", "A limit on jobs, input or work was reached.";
    Unsupported, "unsupported", "The operation or format is not supported.";
    Io, "io", "The operating system reported another error; the message has its name.";
    Internal, "internal", "A bug in Toolcrib. The workspace is unchanged unless the message says otherwise.";
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
        let hint = hint.into();
        self.parts.hint = match message_names::current() {
            Dialect::CommandLine => with_arguments(hint),
            _ => hint,
        };
        self
    }

    /// Sets lines that follow the message, such as a part of the file or a list of candidates.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.parts.detail = detail.into();
        self
    }

    /// Adds a line after the detail.
    #[must_use]
    pub(crate) fn detail_line(mut self, line: &str) -> Self {
        let detail = &mut self.parts.detail;
        if !detail.is_empty() && !detail.ends_with('\n') {
            detail.push('\n');
        }
        *detail += line;
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
        let (kind, hint): (ErrorKind, Cow<'static, str>) = match error.kind() {
            FsErrorKind::Invalid => {
                return Error::invalid(error.detail()).hint(
                    "Give a path inside the workspace, relative to its directory or absolute.",
                );
            }
            FsErrorKind::Outside => (ErrorKind::OutsideWorkspace, OUTSIDE.into()),
            FsErrorKind::Forbidden => (
                ErrorKind::Protected,
                "It belongs to the kernel, or it is an alias of a path with keys, tokens or history.".into(),
            ),
            FsErrorKind::NotFound => {
                (ErrorKind::NotFound, format!("Check the path; {LS} lists a directory.").into())
            }
            FsErrorKind::IsDirectory => (ErrorKind::IsDirectory, format!("{LS} lists a directory.").into()),
            FsErrorKind::NotRegular => {
                (ErrorKind::NotRegular, "Only regular files can be read and written.".into())
            }
            FsErrorKind::TooLarge => (
                ErrorKind::TooLarge,
                format!("It is too large to edit. {READ} shows parts of it, with offset and limit.").into(),
            ),
            FsErrorKind::Permission => (
                ErrorKind::Permission,
                "The user that runs these tools lacks the permission. Only the operator can change that.".into(),
            ),
            FsErrorKind::DirectoryMode => (
                ErrorKind::Permission,
                format!("`chmod u+w '{}'` permits it; then try again.", shown.replace('\'', r"'\''")).into(),
            ),
            FsErrorKind::ReadOnly => (
                ErrorKind::ReadOnly,
                "It is read-only. Make the change elsewhere, or ask the operator.".into(),
            ),
            FsErrorKind::Stale => (
                ErrorKind::Stale,
                format!("Nothing was written. {READ} the file again, then repeat the change.").into(),
            ),
            FsErrorKind::Busy => (
                ErrorKind::Conflict,
                "Nothing was written. Try again when the other process is done.".into(),
            ),
            FsErrorKind::Unsettled => (
                ErrorKind::Io,
                "The change failed halfway and could not be reverted, so files may be changed. Recovery runs when these tools start again.".into(),
            ),
            FsErrorKind::Unsupported => (ErrorKind::Unsupported, "Nothing was changed.".into()),
            FsErrorKind::Io => {
                (ErrorKind::Io, "The operating system reported this error.".into())
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
