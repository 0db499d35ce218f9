//! Versions of files that are read again when they have changed.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The device, inode, size and times of a file. Each change of the file changes one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion([i128; 5]);

/// The version of a file. `None` if it cannot be inspected.
pub(super) fn file_version(file: &Path) -> Option<FileVersion> {
    let found = std::fs::symlink_metadata(file).ok()?;
    let time = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Some(FileVersion([
        found.dev().into(),
        found.ino().into(),
        found.size().into(),
        time(found.mtime(), found.mtime_nsec()),
        time(found.ctime(), found.ctime_nsec()),
    ]))
}
