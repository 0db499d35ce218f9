//! File contents by their hash, compressed. A large content may be stored as its difference from another one.

mod delta;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

use rustix::fs::OFlags;

use self::delta::Delta;
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

/// A smaller content is always stored complete.
const MIN_DELTA_BYTES: usize = 1 << 20;

/// A longer chain of deltas would take long to read, and one damaged file would damage more contents.
const MAX_DELTAS: usize = 16;

/// Several processes that store the same contents at once may make a chain longer.
const MAX_READABLE_DELTAS: usize = 4 * MAX_DELTAS;

const DELTA_SUFFIX: &str = ".delta";

/// The old and the new content of a file. `None` if it does not exist.
pub(crate) type ContentChange<'a> = (Option<&'a Content>, Option<&'a Content>);

#[derive(Debug, Clone)]
pub(super) struct Store {
    journal: PrivateDirectory,
}

impl Store {
    /// The contents of the journal in this directory.
    pub(super) fn new(journal: PrivateDirectory) -> Store {
        Store { journal }
    }

    /// The sizes on disk of a content and of its bases. Empty if it is not stored.
    pub(super) fn sizes(&self, hash: ContentHash) -> Vec<(ContentHash, u64)> {
        let (mut sizes, mut next) = (Vec::new(), Some(hash));
        while let Some(hash) = next.take().filter(|_| sizes.len() <= MAX_READABLE_DELTAS) {
            let size =
                |path| self.journal.stat(path).ok().map(|found| found.st_size.unsigned_abs());
            if let Some(size) = size(name(&hash)) {
                sizes.push((hash, size));
            } else if let Some(size) = size(delta_name(&hash)) {
                sizes.push((hash, size));
                next = self.base(&hash).ok().flatten();
            }
        }
        sizes
    }

    /// Stores and syncs a complete content. An intact stored content is only synced.
    pub(super) fn put(&self, content: &Content) -> Result<(), FsError> {
        self.put_complete(content, File::sync_data)
    }

    /// Stores a complete content without syncing it.
    pub(super) fn put_unsynced(&self, content: &Content) -> Result<(), FsError> {
        self.put_complete(content, |_| Ok(()))
    }

    /// Stores and syncs the contents of changes.
    pub(super) fn put_all(&self, changes: &[ContentChange<'_>]) -> Result<(), FsError> {
        let (mut complete, mut deltas) = (Vec::new(), Vec::new());
        for &(was, now) in changes {
            match (was, now) {
                (Some(was), Some(now)) if was.len().min(now.len()) > MIN_DELTA_BYTES => {
                    complete.push(was);
                    deltas.push((was, now));
                }
                _ => complete.extend([was, now].into_iter().flatten()),
            }
        }
        for_each(&complete, |content| content.len(), |content| self.put(content))?;
        // Afterwards, so that no two contents become deltas of each other, and each base is on disk.
        for_each(&deltas, |(_, now)| now.len(), |(was, now)| self.put_delta(was, now))
    }

    /// Stores and syncs a content as its difference from a stored one, if that is worthwhile.
    fn put_delta(&self, was: &Content, now: &Content) -> Result<(), FsError> {
        let hash = now.hash();
        let deltas = self.deltas(&was.hash())?;
        if self.has(&hash, now.len())? || deltas.is_none_or(|deltas| deltas >= MAX_DELTAS) {
            return self.put(now);
        }
        let Some((delta, new)) = Delta::between(was.hash(), was, now) else {
            return self.put(now);
        };
        let write = || -> io::Result<()> {
            let bytes = [delta.line().into_bytes(), compress(new)?].concat();
            self.write(delta_name(&hash), &bytes, File::sync_data)
        };
        write().map_err(|error| self.error(&hash, "cannot be stored", &error))
    }

    fn put_complete(
        &self,
        content: &Content,
        sync: impl Fn(&File) -> io::Result<()>,
    ) -> Result<(), FsError> {
        let hash = content.hash();
        let stored = if self.has(&hash, content.len())? { self.open(&hash)? } else { None };
        let put = || match &stored {
            // It may have been stored without a sync.
            Some(stored) => sync(stored.file()),
            None => self.write(name(&hash), &compress(content)?, sync),
        };
        put().map_err(|error| self.error(&hash, "cannot be stored", &error))
    }

    fn write(
        &self,
        name: PathBuf,
        bytes: &[u8],
        sync: impl Fn(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        // If a crash leaves it behind, no change refers to it, and the next collection removes it.
        let new = PathBuf::from(format!("{BLOBS}/new-{}", random::hex::<8>()?));
        let mut file = self.journal.create_file(&new, OFlags::empty())?;
        let written = file.write_all(bytes).and_then(|()| sync(&file));
        // A failed write must not fill the disk for good.
        written
            .and_then(|()| self.journal.rename(&new, name))
            .inspect_err(|_| drop(self.journal.remove(&new)))
    }

    /// Whether an intact content of this length is stored. A large one is not verified.
    fn has(&self, hash: &ContentHash, length: usize) -> Result<bool, FsError> {
        if length <= MAX_VERIFIED_BYTES {
            return self.find(hash, length as u64).map(|content| content.is_some());
        }
        self.deltas(hash).map(|deltas| deltas.is_some())
    }

    /// The number of deltas from a content to a complete one. `None` if one of them is not stored.
    fn deltas(&self, hash: &ContentHash) -> Result<Option<usize>, FsError> {
        let mut next = *hash;
        for deltas in 0..=MAX_READABLE_DELTAS {
            match self.open(&next)? {
                Some(Stored::Complete(_)) => return Ok(Some(deltas)),
                Some(Stored::Delta(delta, _)) => next = delta.base,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The content of a version. `None` if it is missing or damaged.
    pub(super) fn get(&self, version: &Version) -> Result<Option<Vec<u8>>, FsError> {
        self.find(&version.hash, version.size)
    }

    fn find(&self, hash: &ContentHash, length: u64) -> Result<Option<Vec<u8>>, FsError> {
        let content = self.read(hash, length, MAX_READABLE_DELTAS)?;
        Ok(content.filter(|content| ContentHash::of(content) == *hash))
    }

    /// Reads a content without verifying it.
    fn read(
        &self,
        hash: &ContentHash,
        length: u64,
        max_deltas: usize,
    ) -> Result<Option<Vec<u8>>, FsError> {
        let (delta, rest) = match self.open(hash)? {
            None => return Ok(None),
            Some(Stored::Complete(file)) => return Ok(decompress(file, length)),
            Some(Stored::Delta(..)) if max_deltas == 0 => return Ok(None),
            Some(Stored::Delta(delta, rest)) => (delta, rest),
        };
        let Some(new) = decompress(rest, length) else { return Ok(None) };
        let base = self.read(&delta.base, delta.base_size, max_deltas - 1)?;
        Ok(base.and_then(|base| delta.apply(base, new)))
    }

    /// Opens a stored content. `None` if it is missing, or a damaged delta.
    fn open(&self, hash: &ContentHash) -> Result<Option<Stored>, FsError> {
        let open = |name| match self.journal.open_file(name, OFlags::RDONLY) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let open_any = || -> io::Result<Option<Stored>> {
            // A power failure can leave an empty file if it was stored without a sync.
            if let Some(file) = open(name(hash))?
                && file.metadata()?.len() > 0
            {
                return Ok(Some(Stored::Complete(file)));
            }
            let Some(file) = open(delta_name(hash))? else { return Ok(None) };
            let mut rest = BufReader::new(file);
            Ok(Delta::read(&mut rest)?.map(|delta| Stored::Delta(delta, rest)))
        };
        open_any().map_err(|error| self.error(hash, "cannot be read", &error))
    }

    /// The content that another one is a delta of.
    fn base(&self, hash: &ContentHash) -> Result<Option<ContentHash>, FsError> {
        Ok(match self.open(hash)? {
            Some(Stored::Delta(delta, _)) => Some(delta.base),
            _ => None,
        })
    }

    /// Removes all contents but these and their bases, and incomplete files of a crash.
    pub(super) fn retain(&self, named: &HashSet<ContentHash>) -> Result<(), FsError> {
        let list = self.journal.list(BLOBS);
        let path = || self.journal.path().join(BLOBS);
        let files = list.map_err(|error| FsError::from_io(path(), "cannot be listed", &error))?;
        let hashes = |suffix| {
            let hash = move |file: &OsString| file.to_str()?.strip_suffix(suffix)?.parse().ok();
            files.iter().filter_map(hash).collect::<HashSet<ContentHash>>()
        };
        let (complete, deltas) = (hashes(""), hashes(DELTA_SUFFIX));
        let mut kept = HashSet::new();
        for hash in named {
            let mut next = Some(*hash).filter(|hash| kept.insert(*hash));
            // Ends at the latest at a content that has been added already.
            while let Some(delta) = next.filter(|hash| deltas.contains(hash)) {
                next = self.base(&delta)?.filter(|base| kept.insert(*base));
            }
        }
        let kept_files: HashSet<PathBuf> = kept
            .iter()
            .map(|hash| if complete.contains(hash) { name(hash) } else { delta_name(hash) })
            .collect();
        for file in files {
            let path = PathBuf::from(BLOBS).join(file);
            if !kept_files.contains(&path) {
                let _ = self.journal.remove(path);
            }
        }
        Ok(())
    }

    fn error(&self, hash: &ContentHash, cannot: &str, error: &io::Error) -> FsError {
        FsError::from_io(self.journal.path().join(name(hash)), cannot, error)
    }
}

/// A stored content.
enum Stored {
    Complete(File),
    /// The delta, and its new bytes.
    Delta(Delta, BufReader<File>),
}

impl Stored {
    fn file(&self) -> &File {
        match self {
            Stored::Complete(file) => file,
            Stored::Delta(_, rest) => rest.get_ref(),
        }
    }
}

/// The path of a complete content, relative to the journal.
fn name(hash: &ContentHash) -> PathBuf {
    PathBuf::from(format!("{BLOBS}/{hash}"))
}

/// The path of a content that is stored as a delta.
fn delta_name(hash: &ContentHash) -> PathBuf {
    PathBuf::from(format!("{BLOBS}/{hash}{DELTA_SUFFIX}"))
}

fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    let level =
        if content.len() > LARGE_BYTES { LARGE_COMPRESSION_LEVEL } else { COMPRESSION_LEVEL };
    zstd::bulk::compress(content, level)
}

/// `None` if it is damaged. A damaged one may claim any length.
fn decompress(from: impl Read, length: u64) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let decoder = zstd::stream::Decoder::new(from).ok()?;
    decoder.take(length.saturating_add(1)).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Calls `put` for each content, on several threads if there is much to sync.
fn for_each<T: Sync>(
    items: &[T],
    length: impl Fn(&T) -> usize,
    put: impl Fn(&T) -> Result<(), FsError> + Sync,
) -> Result<(), FsError> {
    let is_little = items.iter().map(length).sum::<usize>() <= LARGE_BYTES;
    if items.len() < 2 || (items.len() <= MAX_SEQUENTIAL && is_little) {
        return items.iter().try_for_each(put);
    }
    in_parallel(DISK_THREADS, items, put)
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
        let changes: Vec<_> = all.iter().map(|content| (None, Some(content))).collect();
        store.put_all(&changes).unwrap();
        for content in &all {
            assert_eq!(store.get(&version(content)).unwrap().as_deref(), Some(&content[..]));
        }
        let kept = store.journal.list(BLOBS).unwrap();
        assert_eq!(kept.len(), 101, "each once, and nothing left behind");
        store.retain(&[all[0].hash()].into()).unwrap();
        assert_eq!(store.journal.list(BLOBS).unwrap().len(), 1);
        std::fs::remove_dir_all(directory.path()).unwrap();
        assert!(store.put_all(&changes).is_err());
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
        assert!(store.sizes(version.hash)[0].1 < 1_000, "it is compressed");
        std::fs::write(store.journal.path().join(name(&version.hash)), "not zstd").unwrap();
        assert_eq!(store.get(&version).unwrap(), None);
    }

    /// Incompressible, so that a complete one is known by its size.
    fn large(seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        (0..MIN_DELTA_BYTES / 4).flat_map(|_| next()).collect()
    }

    /// Versions of a large file, each with another changed part.
    fn versions(count: usize) -> Vec<Content> {
        let first = large(1);
        let edited = |number: usize| {
            let mut bytes = first.clone();
            for at in 1..=number {
                bytes.splice(at * 50_000..at * 50_000 + 10, format!("edited {at}").bytes());
            }
            Content::from(bytes)
        };
        (0..count).map(edited).collect()
    }

    fn put_in_turn(store: &Store, versions: &[Content]) {
        for pair in versions.windows(2) {
            store.put_all(&[(Some(&pair[0]), Some(&pair[1]))]).unwrap();
        }
    }

    #[test]
    fn edits_of_a_large_file_are_stored_as_deltas_of_bounded_depth() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(2 * MAX_DELTAS + 3);
        put_in_turn(&store, &all);
        for content in &all {
            assert_eq!(store.get(&version(content)).unwrap().as_deref(), Some(&content[..]));
            assert_eq!(store.has(&content.hash(), content.len()), Ok(true));
            assert!(store.sizes(content.hash()).len() <= MAX_DELTAS + 1);
        }
        let is_complete = |content: &&Content| store.sizes(content.hash()).len() == 1;
        assert_eq!(all.iter().filter(is_complete).count(), 3);
        let sizes = store.sizes(all[1].hash());
        assert!(sizes[0].1 < 300 && sizes[1].1 > 2 << 20, "{sizes:?}");
        assert_eq!(sizes[1].0, all[0].hash());
    }

    #[test]
    fn the_base_of_a_kept_delta_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(4);
        put_in_turn(&store, &all);
        store.retain(&[all[2].hash()].into()).unwrap();
        let kept = |content: &Content| store.get(&version(content)).unwrap().is_some();
        assert_eq!(all.iter().map(kept).collect::<Vec<_>>(), [true, true, true, false]);
        store.retain(&HashSet::new()).unwrap();
        assert_eq!(store.journal.list(BLOBS).unwrap(), [""; 0]);
    }

    #[test]
    fn a_delta_beside_the_complete_content_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(2);
        put_in_turn(&store, &all);
        std::fs::write(store.journal.path().join(name(&all[1].hash())), compress(&all[1]).unwrap())
            .unwrap();
        store.retain(&[all[1].hash()].into()).unwrap();
        assert_eq!(store.journal.list(BLOBS).unwrap(), [&*all[1].hash().to_string()]);
    }

    /// Otherwise the base of a delta that cannot be read at the moment would be removed.
    #[test]
    fn nothing_is_removed_if_a_delta_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(2);
        put_in_turn(&store, &all);
        let path = store.journal.path().join(delta_name(&all[1].hash()));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(store.retain(&[all[1].hash()].into()).is_err());
        assert_eq!(store.journal.list(BLOBS).unwrap().len(), 2);
    }

    #[test]
    fn an_empty_file_is_not_a_content() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let content = Content::from(large(1));
        std::fs::write(store.journal.path().join(name(&content.hash())), "").unwrap();
        store.put(&content).unwrap();
        assert_eq!(store.get(&version(&content)).unwrap().as_deref(), Some(&content[..]));
    }

    #[test]
    fn a_delta_without_its_base_is_stored_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(3);
        put_in_turn(&store, &all);
        store.journal.remove(name(&all[0].hash())).unwrap();
        assert_eq!(store.get(&version(&all[2])).unwrap(), None);
        assert_eq!(store.has(&all[2].hash(), all[2].len()), Ok(false));
        store.put_all(&[(Some(&all[2]), Some(&all[1]))]).unwrap();
        for content in &all[1..] {
            assert_eq!(store.get(&version(content)).unwrap().as_deref(), Some(&content[..]));
        }
    }

    #[test]
    fn a_damaged_delta_or_base_is_not_a_content() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(2);
        put_in_turn(&store, &all);
        let path = store.journal.path().join(delta_name(&all[1].hash()));
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            for damaged in [&damaged, &whole[..at]] {
                std::fs::write(&path, damaged).unwrap();
                let found = store.get(&version(&all[1])).unwrap();
                assert!(found.is_none_or(|found| found == all[1][..]), "byte {at}");
            }
        }
        std::fs::write(&path, &whole).unwrap();
        let base = store.journal.path().join(name(&all[0].hash()));
        std::fs::write(base, compress(&large(2)).unwrap()).unwrap();
        assert_eq!(store.get(&version(&all[1])).unwrap(), None);
    }

    /// Two deltas of each other could not be read.
    #[test]
    fn two_large_files_can_be_swapped() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let all = versions(2);
        let (one, other) = (Some(&all[0]), Some(&all[1]));
        store.put_all(&[(one, other), (other, one)]).unwrap();
        for content in &all {
            assert_eq!(store.get(&version(content)).unwrap().as_deref(), Some(&content[..]));
        }
        let cycle = Delta::between(all[1].hash(), &all[1], &all[0]).unwrap();
        store.journal.remove(name(&all[0].hash())).unwrap();
        store.journal.remove(name(&all[1].hash())).unwrap();
        let back = Delta::between(all[0].hash(), &all[0], &all[1]).unwrap();
        for ((delta, new), content) in [(cycle, &all[0]), (back, &all[1])] {
            let bytes = [delta.line().into_bytes(), compress(new).unwrap()].concat();
            store.write(delta_name(&content.hash()), &bytes, |_| Ok(())).unwrap();
        }
        assert_eq!(store.get(&version(&all[0])).unwrap(), None);
        assert_eq!(store.has(&all[0].hash(), all[0].len()), Ok(false));
        assert_eq!(store.sizes(all[0].hash()).len(), MAX_READABLE_DELTAS + 1);
        store.retain(&[all[0].hash()].into()).unwrap();
    }
}
