//! A snapshot of a directory on disk, for comparison with a later one.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Every file, symlink and directory, with content, mode, modification time and inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    links: u64,
    modified: (i64, i64),
    content: Vec<u8>,
}

impl Snapshot {
    pub(crate) fn of(directory: &Path) -> std::io::Result<Snapshot> {
        let mut entries = BTreeMap::new();
        let mut pending = vec![directory.to_owned()];
        while let Some(path) = pending.pop() {
            let metadata = path.symlink_metadata()?;
            let content = if metadata.is_symlink() {
                path.read_link()?.into_os_string().into_encoded_bytes()
            } else if metadata.is_file() {
                std::fs::read(&path)?
            } else {
                Vec::new()
            };
            if metadata.is_dir() {
                for entry in path.read_dir()? {
                    pending.push(entry?.path());
                }
            }
            let entry = Entry {
                mode: metadata.mode(),
                inode: metadata.ino(),
                links: metadata.nlink(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                content,
            };
            entries.insert(path, entry);
        }
        Ok(Snapshot { entries })
    }

    /// The paths that differ, without directories that contain a differing path.
    pub(crate) fn changed_since(&self, before: &Snapshot) -> Vec<PathBuf> {
        let all = self.entries.keys().chain(before.entries.keys());
        let mut changed: Vec<PathBuf> = all
            .filter(|path| self.entries.get(*path) != before.entries.get(*path))
            .cloned()
            .collect();
        changed.sort();
        changed.dedup();
        let inner = changed.clone();
        changed.retain(|path| !inner.iter().any(|other| other != path && other.starts_with(path)));
        changed
    }
}
