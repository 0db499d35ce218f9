//! Access to the journal, with errors for the caller.

use toolcrib_fs::{FsError, FsErrorKind, Journal};

use crate::error::{Error, ErrorKind};

/// The journal, or an error if there is none.
pub(crate) fn require_journal(journal: Option<&Journal>) -> Result<&Journal, Error> {
    journal.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "there is no journal")
            .hint("The host program gave this runtime no directory for a journal.")
    })
}

/// An error about one of our own files. The advice for files of the workspace does not apply to them.
pub(crate) fn journal_error(error: &FsError) -> Error {
    let shown = Error::from_fs(&error.path().display().to_string(), error);
    match error.kind() {
        FsErrorKind::Stale => shown.hint(
            "Toolcrib follows no symlink in its state directory. Remove it there, or replace it by the file that it points to.",
        ),
        FsErrorKind::Permission => shown.hint(
            "Toolcrib keeps its journal and its logs there; --state DIR names another directory.",
        ),
        _ => shown,
    }
}
