//! Access to the journal, with errors for the caller.

use toolcrib_fs::{FsError, Journal};

use crate::error::{Error, ErrorKind};

/// The journal, or an error if there is none.
pub(crate) fn require_journal(journal: Option<&Journal>) -> Result<&Journal, Error> {
    journal.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "there is no journal")
            .hint("The host program gave this runtime no directory for a journal.")
    })
}

pub(crate) fn journal_error(error: &FsError) -> Error {
    Error::from_fs(&error.path().display().to_string(), error)
}
