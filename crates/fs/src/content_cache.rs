//! Files of our own that can be made again: each is called by the hash of what it says, so that one which is
//! torn, or was changed, is told from one which is whole. For their owner alone.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, OFlags};

use crate::error::FsError;
use crate::hash::ContentHash;
use crate::private_directory::PrivateDirectory;
use crate::random;

/// A directory with such files.
#[derive(Debug, Clone)]
pub struct ContentCache {
    directory: PrivateDirectory,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedContent {
    /// What it is called by.
    pub hash: ContentHash,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was put there.
    pub since: SystemTime,
}

/// Something on a shelf that is held open: it stays what it was, also when it is taken away.
#[derive(Debug)]
pub struct CachedFile(File);

/// As long as it is there, nobody else has it.
#[derive(Debug)]
pub struct ContentCacheLock(#[allow(dead_code, reason = "held, not looked at")] File);

const LOCK: &str = "lock";

impl ContentCache {
    /// The shelf in a directory, which is made when something is put there. Where another user could reach it,
    /// nothing is there and nothing can be put there.
    pub fn new(directory: impl AsRef<Path>) -> ContentCache {
        ContentCache { directory: PrivateDirectory::at(directory.as_ref()) }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Puts something there. It is not waited for until it is on disk: what is torn is as good as not there.
    pub fn put(&self, bytes: &[u8]) -> Result<ContentHash, FsError> {
        let hash = ContentHash::of(bytes);
        self.directory.make(&[])?;
        let write = || -> std::io::Result<()> {
            let new = format!("new-{}", random::hex::<8>()?);
            self.directory
                .create_file(&new, OFlags::empty())
                .and_then(|mut file| file.write_all(bytes))
                .and_then(|()| self.directory.rename(&new, hash.to_string()))
                .inspect_err(|_| drop(self.directory.remove(&new)))
        };
        let error = |error| FsError::from_io(self.directory(), "cannot be written", &error);
        write().map_err(error).map(|()| hash)
    }

    /// Takes a look at something; nothing, if it is not there or not what it was.
    pub fn get(&self, shelved: &CachedContent) -> Option<(Vec<u8>, CachedFile)> {
        let CachedFile(file) = self.open(&shelved.hash)?;
        let mut bytes = Vec::new();
        Read::take(&file, shelved.bytes).read_to_end(&mut bytes).ok()?;
        (ContentHash::of(&bytes) == shelved.hash).then_some((bytes, CachedFile(file)))
    }

    /// Holds something open that was just put there.
    pub fn open(&self, hash: &ContentHash) -> Option<CachedFile> {
        self.directory.open_file(hash.to_string(), OFlags::RDONLY).ok().map(CachedFile)
    }

    /// All that is there, the newest first.
    pub fn list(&self) -> Vec<CachedContent> {
        let shelved = |name: &OsStr| {
            let hash = name.to_str()?.parse().ok()?;
            let about = self.directory.open_file(name, OFlags::RDONLY).ok()?.metadata().ok()?;
            Some(CachedContent { hash, bytes: about.len(), since: about.modified().ok()? })
        };
        let names = self.directory.list(".").unwrap_or_default();
        let mut all: Vec<CachedContent> = names.iter().filter_map(|name| shelved(name)).collect();
        all.sort_by_key(|shelved| std::cmp::Reverse(shelved.since));
        all
    }

    /// Takes something away, if it is there.
    pub fn remove(&self, hash: &ContentHash) {
        let _ = self.directory.remove(hash.to_string());
    }

    /// Takes everything away, the shelf too; what was left behind half written goes with it.
    pub fn clear(&self) -> Result<(), FsError> {
        match std::fs::remove_dir_all(self.directory()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(FsError::from_io(self.directory(), "cannot be removed", &error))
            }
            _ => Ok(()),
        }
    }

    /// Takes other shelves beside this one away in which nothing was changed for so long.
    pub fn forget_siblings(&self, age: Duration) {
        let Some(above) = self.directory().parent() else { return };
        for entry in std::fs::read_dir(above).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|about| about.modified()).ok();
            let old =
                modified.and_then(|since| since.elapsed().ok()).is_some_and(|for_| for_ > age);
            if old && entry.path() != self.directory() {
                let _ = ContentCache::new(entry.path()).clear();
            }
        }
    }

    /// Nothing, if somebody else has it.
    pub fn lock(&self) -> Option<ContentCacheLock> {
        self.directory.make(&[]).ok()?;
        let file = self.directory.open_file(LOCK, OFlags::RDWR | OFlags::CREATE).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(ContentCacheLock(file))
    }
}

impl CachedFile {
    /// Fills the buffer with what is there from a byte on; answers whether there was as much.
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> bool {
        self.0.read_exact_at(buffer, at).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_there_is_there_and_what_was_changed_is_not() {
        let top = tempfile::tempdir().unwrap();
        let shelf = ContentCache::new(top.path().join("a/shelf"));
        assert_eq!((shelf.list(), shelf.clear().is_ok()), (vec![], true));
        let (one, two) = (shelf.put(b"one").unwrap(), shelf.put(b"two").unwrap());
        let get = |hash: &ContentHash| {
            let shelved = shelf.list().into_iter().find(|shelved| shelved.hash == *hash)?;
            shelf.get(&shelved).map(|(bytes, _)| bytes)
        };
        assert_eq!(get(&one).as_deref(), Some(&b"one"[..]));
        assert_eq!(shelf.list().len(), 2);
        std::fs::write(shelf.directory().join(one.to_string()), "on").unwrap();
        assert_eq!((get(&one), get(&two)), (None, Some(b"two".to_vec())));
        shelf.remove(&one);
        let (held, mut byte) = (shelf.open(&two).unwrap(), [0]);
        shelf.remove(&two);
        assert_eq!(
            (held.read_at(1, &mut byte), byte, held.read_at(3, &mut byte)),
            (true, *b"w", false)
        );
        assert_eq!((get(&two), shelf.put(b"two")), (None, Ok(two)));
        assert_eq!(shelf.list().len(), 1);
        let lock = shelf.lock();
        assert!(lock.is_some() && shelf.lock().is_none());
        drop(lock);
        assert!(shelf.lock().is_some());
        shelf.clear().unwrap();
        assert_eq!(shelf.list(), []);
    }
}
