//! Paths that the processes of one user reserve for themselves, shared through a directory of records.
//!
//! A record lists the paths of one process. It outlives the process, since the files do, and is removed when
//! none of its paths is left.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::bulk_reader::Stamp;
use crate::content_addressed_cache::ContentAddressedCache;
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::real_path::real_path;

/// The largest number of records. The oldest beyond it are removed.
const MAX_RECORDS: usize = 256;

/// The largest size of a record. A larger file is not one of ours.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// A directory of records.
#[derive(Debug)]
pub struct ReservedPaths {
    cache: ContentAddressedCache,
    /// The paths that were read last, and the stat fingerprint of the directory at that time.
    last_read: Mutex<Option<(Stamp, Arc<[PathBuf]>)>>,
}

impl ReservedPaths {
    /// The records in a directory, which is created with the first record.
    pub fn new(directory: impl AsRef<Path>) -> ReservedPaths {
        ReservedPaths { cache: ContentAddressedCache::new(directory), last_read: Mutex::default() }
    }

    /// Records the real paths of these, and removes stale records of others. Fails if the record cannot be
    /// written.
    pub fn record(&self, paths: &[PathBuf]) -> Result<(), FsError> {
        // Without a trailing slash, which would not match a file.
        let real = |path: &PathBuf| real_path(path).components().collect::<PathBuf>();
        let paths = paths.iter().map(|path| real(path).into_os_string().into_vec());
        let record = paths.collect::<Vec<_>>().join(&0);
        if self.cache.open(&ContentHash::of(&record)).is_some() {
            return Ok(());
        }
        let own = self.cache.put(&record)?;
        for (at, record) in self.cache.list().into_iter().enumerate() {
            let is_stale = || match self.cache.get(&record) {
                Some((bytes, _)) => !paths_in(&bytes).any(|path| exists_or_can_be_created(&path)),
                None => true,
            };
            let is_ours = record.bytes <= MAX_RECORD_BYTES;
            if record.hash != own && (at >= MAX_RECORDS || !is_ours || is_stale()) {
                self.cache.remove(&record.hash);
            }
        }
        Ok(())
    }

    /// All recorded paths, sorted. Takes one system call if no record was added or removed.
    pub fn paths(&self) -> Arc<[PathBuf]> {
        let mut last_read = self.last_read.lock();
        // Before the records are read, so that a record that is added meanwhile is found the next time.
        let stat = rustix::fs::stat(self.cache.directory());
        let stamp = stat.ok().map(|stat| Stamp::of(&stat));
        if let (Some((read_at, paths)), Some(stamp)) = (last_read.as_ref(), &stamp)
            && read_at == stamp
        {
            return paths.clone();
        }
        let records = self.cache.list().into_iter().take(MAX_RECORDS);
        let records = records.filter(|record| record.bytes <= MAX_RECORD_BYTES);
        let records = records.filter_map(|record| Some(self.cache.get(&record)?.0));
        let mut paths: Vec<PathBuf> =
            records.flat_map(|record| paths_in(&record).collect::<Vec<_>>()).collect();
        paths.sort();
        paths.dedup();
        let paths: Arc<[PathBuf]> = paths.into();
        *last_read = stamp.filter(Stamp::is_settled).map(|stamp| (stamp, paths.clone()));
        paths
    }
}

fn paths_in(record: &[u8]) -> impl Iterator<Item = PathBuf> {
    let names = record.split(|&byte| byte == 0).map(OsStr::from_bytes);
    names.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a path exists or can be created: a state directory is created with the first change.
fn exists_or_can_be_created(path: &Path) -> bool {
    path.symlink_metadata().is_ok() || path.parent().is_some_and(|above| above.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_paths_are_shared_until_they_are_removed() {
        let top = tempfile::tempdir_in(std::fs::canonicalize("/tmp").unwrap()).unwrap();
        let [one, other] = [0, 1].map(|_| ReservedPaths::new(top.path().join("state/servers")));
        assert!(one.paths().is_empty());
        let (state, token) = (top.path().join("a/state"), top.path().join("a/token"));
        std::fs::create_dir(top.path().join("a")).unwrap();
        one.record(&[state.clone(), token.clone()]).unwrap();
        one.record(&[state.clone(), token.clone()]).unwrap();
        assert_eq!(other.paths()[..], [state.clone(), token], "recording is idempotent");
        let later = top.path().join("later\nname");
        other.record(std::slice::from_ref(&later)).unwrap();
        assert_eq!(one.paths().len(), 3, "a record that comes later is seen");
        std::fs::remove_dir(top.path().join("a")).unwrap();
        let third = top.path().join("third");
        other.record(std::slice::from_ref(&third)).unwrap();
        assert_eq!(one.paths()[..], [later, third]);
    }

    #[test]
    fn invalid_records_are_skipped() {
        let top = tempfile::tempdir().unwrap();
        let registry = ReservedPaths::new(top.path());
        std::fs::write(top.path().join("0".repeat(64)), "/etc").unwrap();
        std::fs::write(top.path().join("notes"), "/etc").unwrap();
        assert!(registry.paths().is_empty());
    }
}
