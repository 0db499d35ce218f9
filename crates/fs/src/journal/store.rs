//! File contents by their hash, compressed.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::BLOBS;
use super::entry::Version;
use crate::content::Content;
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::parallel_io::{DISK_THREADS, in_parallel};
use crate::private_directory::PrivateDirectory;
use crate::random;

/// Fast rather than small: a change waits for it.
const COMPRESSION_LEVEL: i32 = 1;

/// Larger contents are compressed less, and three times as fast.
const LARGE_BYTES: usize = 8 << 20;
const LARGE_COMPRESSION_LEVEL: i32 = -5;

/// Up to this many contents are stored one after the other, more by several threads, since each is synced.
const MAX_SEQUENTIAL: usize = 8;

/// A larger content that is already stored is not verified.
const MAX_VERIFIED_BYTES: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Store {
    journal: PrivateDirectory,
}

impl Store {
    /// The contents of the journal in this directory.
    pub(super) fn new(journal: PrivateDirectory) -> Store {
        Store { journal }
    }

    /// The size of a content on disk. Zero if it is not stored.
    pub(super) fn size(&self, hash: &ContentHash) -> u64 {
        self.journal.stat(name(hash)).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0))
    }

    /// Stores and syncs a content. An intact stored content is left as it is: it was synced before it got its
    /// name.
    pub(super) fn put(&self, content: &Content) -> Result<(), FsError> {
        self.write(content, File::sync_data)
    }

    /// Stores a content without syncing it.
    pub(super) fn put_unsynced(&self, content: &Content) -> Result<(), FsError> {
        self.write(content, |_| Ok(()))
    }

    fn write(
        &self,
        content: &Content,
        sync: impl Fn(&File) -> std::io::Result<()>,
    ) -> Result<(), FsError> {
        let hash = content.hash();
        if self.has(&hash, content.len())? {
            return Ok(());
        }
        let level =
            if content.len() > LARGE_BYTES { LARGE_COMPRESSION_LEVEL } else { COMPRESSION_LEVEL };
        let write = || -> std::io::Result<()> {
            let compressed = zstd::bulk::compress(content, level)?;
            // If a crash leaves it behind, no change refers to it, and the next collection removes it.
            let new = PathBuf::from(format!("{BLOBS}/new-{}", random::hex::<8>()?));
            let mut file = self.journal.create_file(&new, OFlags::empty())?;
            let written = file.write_all(&compressed).and_then(|()| sync(&file));
            // A failed write must not fill the disk for good.
            written
                .and_then(|()| self.journal.rename(&new, name(&hash)))
                .inspect_err(|_| drop(self.journal.remove(&new)))
        };
        write().map_err(|error| self.error(&hash, "cannot be stored", &error))
    }

    /// Stores and syncs contents.
    pub(super) fn put_all(&self, contents: &[&Content]) -> Result<(), FsError> {
        let is_little = contents.iter().map(|content| content.len()).sum::<usize>() <= LARGE_BYTES;
        if contents.len() < 2 || (contents.len() <= MAX_SEQUENTIAL && is_little) {
            return contents.iter().try_for_each(|content| self.put(content));
        }
        in_parallel(DISK_THREADS, contents, |content| self.put(content))
    }

    /// Whether an intact content of this length is stored. A large one is not verified: it was synced before
    /// it got its name.
    fn has(&self, hash: &ContentHash, length: usize) -> Result<bool, FsError> {
        if length <= MAX_VERIFIED_BYTES {
            return self.find(hash, length as u64).map(|content| content.is_some());
        }
        Ok(self.journal.open_file(name(hash), OFlags::RDONLY).is_ok())
    }

    /// The content of a version. `None` if it is missing or damaged.
    pub(super) fn get(&self, version: &Version) -> Result<Option<Vec<u8>>, FsError> {
        self.find(&version.hash, version.size)
    }

    fn find(&self, hash: &ContentHash, length: u64) -> Result<Option<Vec<u8>>, FsError> {
        let file = match self.journal.open_file(name(hash), OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(hash, "cannot be read", &error)),
        };
        let decode = || -> std::io::Result<Vec<u8>> {
            let mut content = Vec::new();
            // A damaged one may claim any length.
            let decoder = zstd::stream::Decoder::new(file)?;
            decoder.take(length.saturating_add(1)).read_to_end(&mut content)?;
            Ok(content)
        };
        Ok(decode().ok().filter(|content| ContentHash::of(content) == *hash))
    }

    /// Removes all contents but these, and incomplete files of a crash.
    pub(super) fn retain(&self, named: &HashSet<ContentHash>) -> Result<(), FsError> {
        let list = self.journal.list(BLOBS);
        let path = || self.journal.path().join(BLOBS);
        for file in list.map_err(|error| FsError::from_io(path(), "cannot be listed", &error))? {
            let hash = file.to_str().and_then(|name| name.parse().ok());
            if !hash.is_some_and(|hash| named.contains(&hash)) {
                let _ = self.journal.remove(PathBuf::from(BLOBS).join(file));
            }
        }
        Ok(())
    }

    fn error(&self, hash: &ContentHash, cannot: &str, error: &std::io::Error) -> FsError {
        FsError::from_io(self.journal.path().join(name(hash)), cannot, error)
    }
}

/// The path of a content, relative to the journal.
fn name(hash: &ContentHash) -> PathBuf {
    PathBuf::from(format!("{BLOBS}/{hash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(directory: &tempfile::TempDir) -> Store {
        let journal = PrivateDirectory::new(&directory.path().join("state"));
        journal.make(&[BLOBS]).unwrap();
        Store::new(journal)
    }

    fn version(content: &Content) -> Version {
        Version::of(content, 0o644)
    }

    #[test]
    fn many_and_large_contents_are_stored() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let large = Content::from(b"large ".repeat(LARGE_BYTES / 4));
        let small = (0..100).map(|number: u32| Content::from(number.to_le_bytes().to_vec()));
        let all: Vec<Content> = small.chain([large.clone(), large]).collect();
        store.put_all(&all.iter().collect::<Vec<_>>()).unwrap();
        for content in &all {
            assert_eq!(store.get(&version(content)).unwrap().as_deref(), Some(&content[..]));
        }
        let kept = store.journal.list(BLOBS).unwrap();
        assert_eq!(kept.len(), 101, "each once, and nothing left behind");
        store.retain(&[all[0].hash()].into()).unwrap();
        assert_eq!(store.journal.list(BLOBS).unwrap().len(), 1);
        std::fs::remove_dir_all(directory.path()).unwrap();
        assert!(store.put_all(&all.iter().collect::<Vec<_>>()).is_err());
    }

    #[test]
    fn a_stored_content_is_found_and_a_damaged_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let content = Content::from(b"hello ".repeat(10_000));
        let version = version(&content);
        assert_eq!(store.get(&version).unwrap(), None);
        store.put(&content).unwrap();
        store.put(&content).unwrap();
        assert_eq!(store.get(&version).unwrap().as_deref(), Some(&content[..]));
        assert!(store.size(&version.hash) < 1_000, "it is compressed");
        std::fs::write(store.journal.path().join(name(&version.hash)), "not zstd").unwrap();
        assert_eq!(store.get(&version).unwrap(), None);
    }
}
