//! A cache of files that can be recreated. Each is named by the hash of its content, so that torn or modified
//! files are detected. Only their owner can access them.

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

/// A directory of cached files.
#[derive(Debug, Clone)]
pub struct ContentAddressedCache {
    directory: PrivateDirectory,
}

/// The metadata of a cached file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFileInfo {
    /// The hash of its content, which is its name.
    pub hash: ContentHash,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written.
    pub since: SystemTime,
}

/// An open cached file. It stays readable after it was removed.
#[derive(Debug)]
pub struct CachedFile(File);

/// The exclusive lock of a cache, held until it is dropped.
#[derive(Debug)]
pub struct ContentAddressedCacheLock(#[allow(dead_code, reason = "held, not looked at")] File);

const LOCK: &str = "lock";

impl ContentAddressedCache {
    /// The cache in a directory, which is created on the first write. If another user could access the
    /// directory, reads find nothing and writes fail.
    pub fn new(directory: impl AsRef<Path>) -> ContentAddressedCache {
        ContentAddressedCache { directory: PrivateDirectory::new(directory.as_ref()) }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file. Does not wait until it is on disk: a torn file counts as missing.
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

    /// Reads a file. `None` if it is missing or was modified.
    pub fn get(&self, cached: &CachedFileInfo) -> Option<(Vec<u8>, CachedFile)> {
        let CachedFile(file) = self.open(&cached.hash)?;
        let mut bytes = Vec::new();
        Read::take(&file, cached.bytes).read_to_end(&mut bytes).ok()?;
        (ContentHash::of(&bytes) == cached.hash).then_some((bytes, CachedFile(file)))
    }

    /// Opens a file that was just written, without checking its content.
    pub fn open(&self, hash: &ContentHash) -> Option<CachedFile> {
        self.directory.open_file(hash.to_string(), OFlags::RDONLY).ok().map(CachedFile)
    }

    /// All files, newest first.
    pub fn list(&self) -> Vec<CachedFileInfo> {
        let cached = |name: &OsStr| {
            let hash = name.to_str()?.parse().ok()?;
            let about = self.directory.open_file(name, OFlags::RDONLY).ok()?.metadata().ok()?;
            Some(CachedFileInfo { hash, bytes: about.len(), since: about.modified().ok()? })
        };
        let names = self.directory.list(".").unwrap_or_default();
        let mut all: Vec<CachedFileInfo> = names.iter().filter_map(|name| cached(name)).collect();
        all.sort_by_key(|cached| std::cmp::Reverse(cached.since));
        all
    }

    /// Removes a file if it exists.
    pub fn remove(&self, hash: &ContentHash) {
        let _ = self.directory.remove(hash.to_string());
    }

    /// Removes the cache with all its files, including incomplete ones.
    pub fn clear(&self) -> Result<(), FsError> {
        match std::fs::remove_dir_all(self.directory()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(FsError::from_io(self.directory(), "cannot be removed", &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes other caches in the same parent directory that were not modified for `age`.
    pub fn remove_old_siblings(&self, age: Duration) {
        let Some(above) = self.directory().parent() else { return };
        for entry in std::fs::read_dir(above).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|about| about.modified()).ok();
            let old =
                modified.and_then(|since| since.elapsed().ok()).is_some_and(|for_| for_ > age);
            if old && entry.path() != self.directory() {
                let _ = ContentAddressedCache::new(entry.path()).clear();
            }
        }
    }

    /// Acquires the exclusive lock. `None` if another process holds it.
    pub fn lock(&self) -> Option<ContentAddressedCacheLock> {
        self.directory.make(&[]).ok()?;
        let file = self.directory.open_file(LOCK, OFlags::RDWR | OFlags::CREATE).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(ContentAddressedCacheLock(file))
    }
}

impl CachedFile {
    /// Fills the buffer from an offset. Returns whether there were enough bytes.
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> bool {
        self.0.read_exact_at(buffer, at).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_content_is_found_and_modified_content_is_not() {
        let top = tempfile::tempdir().unwrap();
        let cache = ContentAddressedCache::new(top.path().join("a/shelf"));
        assert_eq!((cache.list(), cache.clear().is_ok()), (vec![], true));
        let (one, two) = (cache.put(b"one").unwrap(), cache.put(b"two").unwrap());
        let get = |hash: &ContentHash| {
            let cached = cache.list().into_iter().find(|cached| cached.hash == *hash)?;
            cache.get(&cached).map(|(bytes, _)| bytes)
        };
        assert_eq!(get(&one).as_deref(), Some(&b"one"[..]));
        assert_eq!(cache.list().len(), 2);
        std::fs::write(cache.directory().join(one.to_string()), "on").unwrap();
        assert_eq!((get(&one), get(&two)), (None, Some(b"two".to_vec())));
        cache.remove(&one);
        let (held, mut byte) = (cache.open(&two).unwrap(), [0]);
        cache.remove(&two);
        assert_eq!(
            (held.read_at(1, &mut byte), byte, held.read_at(3, &mut byte)),
            (true, *b"w", false)
        );
        assert_eq!((get(&two), cache.put(b"two")), (None, Ok(two)));
        assert_eq!(cache.list().len(), 1);
        let lock = cache.lock();
        assert!(lock.is_some() && cache.lock().is_none());
        drop(lock);
        assert!(cache.lock().is_some());
        cache.clear().unwrap();
        assert_eq!(cache.list(), []);
    }
}
