//! File contents by their hash, compressed.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use crate::content::Content;
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::random;

/// Quick rather than small: a change waits for it.
const LEVEL: i32 = 1;

/// Larger contents are compressed less, and thrice as fast.
const LARGE: usize = 8 << 20;
const LEVEL_OF_LARGE: i32 = -5;

/// So many contents are kept one after the other, and more by several threads: each waits for the disk.
const FEW: usize = 8;
const THREADS: usize = 8;

/// A larger content that is there already is not read to see whether it is whole.
const MAX_VERIFIED: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Store {
    directory: PathBuf,
}

impl Store {
    pub(super) fn new(directory: PathBuf) -> Store {
        Store { directory }
    }

    /// Where a content is, if it is there.
    pub(super) fn path(&self, hash: &ContentHash) -> PathBuf {
        self.directory.join(hash.to_string())
    }

    /// Keeps a content; when it returns, it is on disk. One that is there already, and whole, stays as it
    /// is: it was synced before it got its name.
    pub(super) fn put(&self, content: &Content) -> Result<(), FsError> {
        self.write(content, std::fs::File::sync_data)
    }

    /// Keeps a content; it comes to the disk when the system finds time.
    pub(super) fn put_soon(&self, content: &Content) -> Result<(), FsError> {
        self.write(content, |_| Ok(()))
    }

    fn write(
        &self,
        content: &Content,
        sync: impl Fn(&std::fs::File) -> std::io::Result<()>,
    ) -> Result<(), FsError> {
        let hash = content.hash();
        let path = self.path(&hash);
        if self.has(&hash, content.len())? {
            return Ok(());
        }
        let level = if content.len() > LARGE { LEVEL_OF_LARGE } else { LEVEL };
        let write = || -> std::io::Result<()> {
            let compressed = zstd::bulk::compress(content, level)?;
            let mut file = new_file(&self.directory)?;
            let written = file.0.write_all(&compressed).and_then(|()| sync(&file.0));
            // What could not be written must not fill the disk for good.
            written.and_then(|()| std::fs::rename(&file.1, &path)).inspect_err(|_| {
                let _ = std::fs::remove_file(&file.1);
            })
        };
        write().map_err(|error| FsError::from_io(&path, "cannot be kept", &error))
    }

    /// Keeps contents; when it returns, all are on disk.
    pub(super) fn put_all(&self, contents: &[&Content]) -> Result<(), FsError> {
        let is_little = contents.iter().map(|content| content.len()).sum::<usize>() <= LARGE;
        if contents.len() < 2 || (contents.len() <= FEW && is_little) {
            return contents.iter().try_for_each(|content| self.put(content));
        }
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(content) = contents.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.put(content)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..THREADS.min(contents.len())).map(|_| scope.spawn(work)).collect();
            let ended = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(kept) => kept,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            others.into_iter().map(ended).fold(work(), Result::and)
        })
    }

    /// Whether a content of this length is there, and whole. It was synced before it got its name, so of a
    /// large one that is enough.
    fn has(&self, hash: &ContentHash, length: usize) -> Result<bool, FsError> {
        if length <= MAX_VERIFIED {
            return self.get(hash).map(|content| content.is_some());
        }
        Ok(self.path(hash).exists())
    }

    /// A content; nothing, if it is not there or not what it should be.
    pub(super) fn get(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, FsError> {
        let path = self.path(hash);
        let compressed = match std::fs::read(&path) {
            Ok(compressed) => compressed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FsError::from_io(&path, "cannot be read", &error)),
        };
        let content = zstd::stream::decode_all(compressed.as_slice()).ok();
        Ok(content.filter(|content| ContentHash::of(content) == *hash))
    }

    /// All that is there, also what a crash left half written.
    pub(super) fn list(&self) -> Result<Vec<PathBuf>, FsError> {
        let list = || self.directory.read_dir()?.map(|entry| Ok(entry?.path())).collect();
        let listed: std::io::Result<Vec<PathBuf>> = list();
        listed.map_err(|error| FsError::from_io(&self.directory, "cannot be listed", &error))
    }
}

/// A new file in the directory, and its path. One that a crash leaves behind is named by nothing, so that
/// the next collection takes it away.
fn new_file(directory: &std::path::Path) -> std::io::Result<(std::fs::File, PathBuf)> {
    let path = directory.join(format!("new-{}", random::hex::<8>()?));
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_contents_and_large_ones_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().to_owned());
        let large = Content::from(b"large ".repeat(LARGE / 4));
        let small = (0..100).map(|number: u32| Content::from(number.to_le_bytes().to_vec()));
        let all: Vec<Content> = small.chain([large.clone(), large]).collect();
        store.put_all(&all.iter().collect::<Vec<_>>()).unwrap();
        for content in &all {
            assert_eq!(store.get(&content.hash()).unwrap().as_deref(), Some(&content[..]));
        }
        assert_eq!(store.list().unwrap().len(), 101, "each once, and nothing left behind");
        std::fs::remove_dir_all(directory.path()).unwrap();
        assert!(store.put_all(&all.iter().collect::<Vec<_>>()).is_err());
    }

    #[test]
    fn a_content_comes_back_and_a_broken_one_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().to_owned());
        let content = b"hello ".repeat(10_000);
        let hash = ContentHash::of(&content);
        assert_eq!(store.get(&hash).unwrap(), None);
        store.put(&content.clone().into()).unwrap();
        store.put(&content.clone().into()).unwrap();
        assert_eq!(store.get(&hash).unwrap(), Some(content));
        let kept = store.list().unwrap();
        assert!(kept[0].metadata().unwrap().len() < 1_000, "it is compressed");
        std::fs::write(store.path(&hash), "not zstd").unwrap();
        assert_eq!(store.get(&hash).unwrap(), None);
    }
}
