//! Parses a path from a caller. Nothing is expanded: `~`, `$X`, `%2e` and `*` are plain characters.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{FsError, FsErrorKind};

/// The limits of the kernel.
const MAX_PATH_BYTES: usize = 4096;
const MAX_NAME_BYTES: usize = 255;

/// The components of a path, including `..`, without `.` and empty ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestedPath {
    pub(crate) absolute: bool,
    pub(crate) names: Vec<OsString>,
    /// It ends with a slash or with `/.`: as for the kernel, it must lead to a directory.
    pub(crate) names_directory: bool,
}

impl RequestedPath {
    pub(crate) fn parse(path: &Path) -> Result<Self, FsError> {
        let bytes = path.as_os_str().as_bytes();
        let invalid = |detail: &str| {
            let shown = &bytes[..bytes.len().min(MAX_NAME_BYTES)];
            Err(FsError::new(FsErrorKind::Invalid, OsStr::from_bytes(shown), detail))
        };
        if bytes.is_empty() {
            return invalid("the path is empty");
        }
        if bytes.contains(&0) {
            return invalid("the path contains a NUL byte");
        }
        if bytes.len() > MAX_PATH_BYTES {
            return invalid("the path is longer than 4,096 bytes");
        }
        let names: Vec<OsString> = bytes
            .split(|&byte| byte == b'/')
            .filter(|name| !name.is_empty() && *name != b".")
            .map(|name| OsStr::from_bytes(name).to_owned())
            .collect();
        if names.iter().any(|name| name.len() > MAX_NAME_BYTES) {
            return invalid("a component of the path is longer than 255 bytes");
        }
        let names_directory = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        Ok(RequestedPath { absolute: bytes.first() == Some(&b'/'), names, names_directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_empty_components_are_removed_and_parents_are_kept() {
        let requested = RequestedPath::parse(Path::new("./a//b/./../c/")).unwrap();
        assert_eq!(requested.names, ["a", "b", "..", "c"]);
        assert!(!requested.absolute);
    }

    #[test]
    fn a_trailing_slash_names_a_directory() {
        let names_directory = |path| RequestedPath::parse(Path::new(path)).unwrap().names_directory;
        assert!(["a/", "a//", "a/.", "/", "a/./"].into_iter().all(names_directory));
        assert!(!["a", ".", "..", "a/..", "a/b.", ".a"].into_iter().any(names_directory));
    }

    #[test]
    fn invalid_paths_are_refused() {
        for bad in ["", "a\0b", &"a/".repeat(3000), &"n".repeat(256)] {
            let kind = RequestedPath::parse(Path::new(bad)).unwrap_err().kind();
            assert_eq!(kind, FsErrorKind::Invalid);
        }
    }
}
