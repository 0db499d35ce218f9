//! Files of our own that can be made again: each is called by the hash of what it says, so that one which is
//! torn, or was changed, is told from one which is whole. For their owner alone.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::error::FsError;
use crate::hash::ContentHash;
use crate::random;

/// A directory with such files.
#[derive(Debug, Clone)]
pub struct Shelf {
    directory: PathBuf,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelved {
    /// What it is called by.
    pub hash: ContentHash,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was put there.
    pub since: SystemTime,
}

/// Something on a shelf that is held open: it stays what it was, also when it is taken away.
#[derive(Debug)]
pub struct ShelvedFile(std::fs::File);

/// As long as it is there, nobody else has it.
#[derive(Debug)]
pub struct ShelfLock(#[allow(dead_code, reason = "held, not looked at")] OwnedFd);

const LOCK: &str = "lock";

impl Shelf {
    /// The shelf in a directory, which is made when something is put there.
    pub fn new(directory: impl Into<PathBuf>) -> Shelf {
        Shelf { directory: directory.into() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Puts something there. It is not waited for until it is on disk: what is torn is as good as not there.
    pub fn put(&self, bytes: &[u8]) -> Result<ContentHash, FsError> {
        let hash = ContentHash::of(bytes);
        let write = || -> std::io::Result<()> {
            self.make()?;
            let new = self.directory.join(format!("new-{}", random::hex::<8>()?));
            std::fs::write(&new, bytes)
                .and_then(|()| std::fs::rename(&new, self.path(&hash)))
                .inspect_err(|_| drop(std::fs::remove_file(&new)))
        };
        let error = |error| FsError::from_io(&self.directory, "cannot be written", &error);
        write().map_err(error).map(|()| hash)
    }

    /// Takes a look at something; nothing, if it is not there or not what it was.
    pub fn get(&self, hash: &ContentHash) -> Option<(Vec<u8>, ShelvedFile)> {
        let ShelvedFile(mut file) = self.open(hash)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        (ContentHash::of(&bytes) == *hash).then_some((bytes, ShelvedFile(file)))
    }

    /// Holds something open that was just put there.
    pub fn open(&self, hash: &ContentHash) -> Option<ShelvedFile> {
        std::fs::File::open(self.path(hash)).ok().map(ShelvedFile)
    }

    /// All that is there, the newest first.
    pub fn list(&self) -> Vec<Shelved> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let shelved = |entry: std::fs::DirEntry| {
            let hash = entry.file_name().to_str()?.parse().ok()?;
            let about = entry.metadata().ok()?;
            Some(Shelved { hash, bytes: about.len(), since: about.modified().ok()? })
        };
        let mut all: Vec<Shelved> = entries.filter_map(shelved).collect();
        all.sort_by_key(|shelved| std::cmp::Reverse(shelved.since));
        all
    }

    /// Takes something away, if it is there.
    pub fn remove(&self, hash: &ContentHash) {
        let _ = std::fs::remove_file(self.path(hash));
    }

    /// Takes everything away, the shelf too; what was left behind half written goes with it.
    pub fn clear(&self) -> Result<(), FsError> {
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(FsError::from_io(&self.directory, "cannot be removed", &error))
            }
            _ => Ok(()),
        }
    }

    /// Takes other shelves beside this one away in which nothing was changed for so long.
    pub fn forget_siblings(&self, age: Duration) {
        let Some(above) = self.directory.parent() else { return };
        for entry in std::fs::read_dir(above).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|about| about.modified()).ok();
            let old =
                modified.and_then(|since| since.elapsed().ok()).is_some_and(|for_| for_ > age);
            if old && entry.path() != self.directory {
                let _ = Shelf::new(entry.path()).clear();
            }
        }
    }

    /// Nothing, if somebody else has it.
    pub fn lock(&self) -> Option<ShelfLock> {
        self.make().ok()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::open(self.directory.join(LOCK), flags, mode).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(ShelfLock(file))
    }

    fn path(&self, hash: &ContentHash) -> PathBuf {
        self.directory.join(hash.to_string())
    }

    fn make(&self) -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)
    }
}

impl ShelvedFile {
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
        let shelf = Shelf::new(top.path().join("a/shelf"));
        assert_eq!((shelf.list(), shelf.clear().is_ok()), (vec![], true));
        let (one, two) = (shelf.put(b"one").unwrap(), shelf.put(b"two").unwrap());
        let get = |hash| shelf.get(hash).map(|(bytes, _)| bytes);
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
