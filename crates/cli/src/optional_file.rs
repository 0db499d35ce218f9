//! Files that need not exist.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// Whether the file does not exist. A dangling symlink is an error instead: without it, the settings that the user put there
/// would be ignored silently.
pub(crate) fn is_missing(path: &Path, error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound && !path.is_symlink()
}

/// The error about a file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &Error) -> String {
    let shown = path.display();
    if error.kind() == ErrorKind::NotFound && path.is_symlink() {
        return format!(
            "{shown} is a symlink to a file that does not exist; create that file, or remove the symlink"
        );
    }
    format!("{shown}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dangling_symlink_is_not_a_missing_file() {
        let directory = tempfile::tempdir().unwrap();
        let (missing, link) = (directory.path().join("missing"), directory.path().join("link"));
        std::os::unix::fs::symlink(&missing, &link).unwrap();
        let error = std::fs::read(&link).unwrap_err();
        assert!(is_missing(&missing, &error));
        assert!(!is_missing(&link, &error));
        assert!(unreadable(&link, &error).contains("is a symlink to a file that does not exist"));
    }
}
