//! Paths that the processes of one user keep for themselves, known to each other by a directory of records.
//!
//! A record is the list of one process's paths. It outlives the process, since what lies there does; it is
//! removed when all of that is gone.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::content_cache::ContentCache;
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::root::real_path;
use crate::tree_reader::Stamp;

/// Records of a user. The oldest of more are removed.
const MAX_RECORDS: usize = 256;

/// Bytes of a record; a larger one is none of ours.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// A directory of records.
#[derive(Debug)]
pub struct Registry {
    shelf: ContentCache,
    /// What was read last, and the stamp that the directory had then.
    known: Mutex<Option<(Stamp, Arc<[PathBuf]>)>>,
}

impl Registry {
    /// The records in a directory, which is made when the first is put there.
    pub fn new(directory: impl AsRef<Path>) -> Registry {
        Registry { shelf: ContentCache::new(directory), known: Mutex::default() }
    }

    /// Records the real paths of these, and removes the records of others of which nothing is left.
    pub fn record(&self, paths: &[PathBuf]) -> Result<(), FsError> {
        // Without a slash at the end: what a file has behind it is not found.
        let real = |path: &PathBuf| real_path(path).components().collect::<PathBuf>();
        let paths = paths.iter().map(|path| real(path).into_os_string().into_vec());
        let record = paths.collect::<Vec<_>>().join(&0);
        if self.shelf.open(&ContentHash::of(&record)).is_some() {
            return Ok(());
        }
        let own = self.shelf.put(&record)?;
        for (at, record) in self.shelf.list().into_iter().enumerate() {
            let is_stale = || match self.shelf.get(&record) {
                Some((bytes, _)) => !paths_in(&bytes).any(|path| has_place(&path)),
                None => true,
            };
            let is_ours = record.bytes <= MAX_RECORD_BYTES;
            if record.hash != own && (at >= MAX_RECORDS || !is_ours || is_stale()) {
                self.shelf.remove(&record.hash);
            }
        }
        Ok(())
    }

    /// All recorded paths, in order. One system call, where no record came or went.
    pub fn paths(&self) -> Arc<[PathBuf]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the records are read, so that one that comes meanwhile is seen the next time.
        let stat = rustix::fs::stat(self.shelf.directory());
        let stamp = stat.ok().map(|stat| Stamp::of(&stat));
        if let (Some((read_at, paths)), Some(stamp)) = (known.as_ref(), &stamp)
            && read_at == stamp
        {
            return paths.clone();
        }
        let records = self.shelf.list().into_iter().take(MAX_RECORDS);
        let records = records.filter(|record| record.bytes <= MAX_RECORD_BYTES);
        let records = records.filter_map(|record| Some(self.shelf.get(&record)?.0));
        let mut paths: Vec<PathBuf> =
            records.flat_map(|record| paths_in(&record).collect::<Vec<_>>()).collect();
        paths.sort();
        paths.dedup();
        let paths: Arc<[PathBuf]> = paths.into();
        *known = stamp.filter(Stamp::is_settled).map(|stamp| (stamp, paths.clone()));
        paths
    }
}

fn paths_in(record: &[u8]) -> impl Iterator<Item = PathBuf> {
    let names = record.split(|&byte| byte == 0).map(OsStr::from_bytes);
    names.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether something is at a path, or may be made there: a state directory comes with the first change.
fn has_place(path: &Path) -> bool {
    path.symlink_metadata().is_ok() || path.parent().is_some_and(|above| above.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_to_others_until_they_are_gone() {
        let top = tempfile::tempdir_in(std::fs::canonicalize("/tmp").unwrap()).unwrap();
        let [one, other] = [0, 1].map(|_| Registry::new(top.path().join("state/servers")));
        assert!(one.paths().is_empty());
        let (state, token) = (top.path().join("a/state"), top.path().join("a/token"));
        std::fs::create_dir(top.path().join("a")).unwrap();
        one.record(&[state.clone(), token.clone()]).unwrap();
        one.record(&[state.clone(), token.clone()]).unwrap();
        assert_eq!(other.paths()[..], [state.clone(), token], "twice is once");
        let later = top.path().join("later\nname");
        other.record(std::slice::from_ref(&later)).unwrap();
        assert_eq!(one.paths().len(), 3, "a record that comes later is seen");
        std::fs::remove_dir(top.path().join("a")).unwrap();
        let third = top.path().join("third");
        other.record(std::slice::from_ref(&third)).unwrap();
        assert_eq!(one.paths()[..], [later, third]);
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        let top = tempfile::tempdir().unwrap();
        let registry = Registry::new(top.path());
        std::fs::write(top.path().join("0".repeat(64)), "/etc").unwrap();
        std::fs::write(top.path().join("notes"), "/etc").unwrap();
        assert!(registry.paths().is_empty());
    }
}
