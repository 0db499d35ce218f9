//! The user's home directory.

use std::path::PathBuf;

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}
