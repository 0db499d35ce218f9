//! The note about files that a session leaves in its private `/tmp`, which is removed with the session.

use std::path::Path;

use toolcrib_fs::{Directory, EntryKind, Root, RootMode, Workspace};

use crate::phrases::counted;

/// Limit of counted files and directories.
const MAX_COUNTED: u64 = 100_000;

/// Deeper directories are not counted.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    files: u64,
    bytes: u64,
    entries: u64,
}

/// Counts the files below a directory. `None` if there are none.
pub(crate) fn in_directory(path: &Path) -> Option<Leftovers> {
    let root = Root::open(path, RootMode::ReadOnly).ok()?;
    let top = Directory::open(&Workspace::new(vec![root]).ok()?.top()).ok()?;
    let mut left = Leftovers::default();
    left.count(&top, 0);
    (left.files > 0).then_some(left)
}

impl Leftovers {
    fn count(&mut self, directory: &Directory, depth: usize) {
        let mut below = Vec::new();
        // Unreadable entries are not counted.
        let _ = directory.each(|name, kind| {
            self.entries += 1;
            match kind {
                EntryKind::Directory if depth < MAX_DEPTH => below.push(name.to_owned()),
                EntryKind::File => {
                    self.files += 1;
                    self.bytes += directory.size(name).unwrap_or(0);
                }
                _ => {}
            }
            self.entries < MAX_COUNTED
        });
        for name in below {
            if self.entries >= MAX_COUNTED {
                return;
            }
            if let Ok(child) = directory.child(&name) {
                self.count(&child, depth + 1);
            }
        }
    }

    /// The message to the user.
    pub(crate) fn sentence(&self) -> String {
        let at_least = if self.entries >= MAX_COUNTED { "at least " } else { "" };
        let (files, bytes) = (counted(self.files, "file"), counted(self.bytes, "byte"));
        format!(
            "the session left {at_least}{files} ({bytes}) in its private /tmp, which was deleted"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test lays out files")]
    fn files_are_counted_and_directories_are_not() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("a/b")).unwrap();
        assert_eq!(in_directory(top.path()), None);
        std::fs::write(top.path().join("a/b/f"), "123").unwrap();
        std::os::unix::fs::symlink("/etc", top.path().join("link")).unwrap();
        let left = in_directory(top.path()).unwrap();
        assert!(left.sentence().contains("1 file (3 bytes)"), "{}", left.sentence());
    }
}
