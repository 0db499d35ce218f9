//! Looks which paths exist, from the top down. It stops at each missing directory, so most missing paths cost nothing.

use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RawDir, open};

use super::SetPath;
use super::sorted_paths::PathSlice;

/// With more entries than this to look for in a directory, the directory is listed.
const MAX_SINGLE_LOOKUPS: usize = 4;

/// A directory with more bytes than this for each entry to look for has so many entries that single lookups are quicker.
/// File systems count differently; this affects only the speed.
const MAX_BYTES_PER_LOOKUP: u64 = 512;

/// The buffer for the entries of a directory.
const LISTING_BYTES: usize = 8 << 10;

/// Calls `each` for each path.
pub(super) fn look<'a>(paths: PathSlice<'a>, each: &mut impl FnMut(SetPath<'a>)) {
    // Slashes come first. Relative paths have no meaning here.
    let (absolute, relative) = paths.split_at(paths.partition_point(Path::is_absolute));
    for path in relative.iter() {
        each(SetPath { path, exists: false, existing: parent(path) });
    }
    // The root directory has no name. Nothing can hide it.
    let has_root = absolute.get(0).is_some_and(|first| first.as_os_str() == "/");
    let (_, paths) = absolute.split_at(usize::from(has_root));
    if let Some(first) = paths.get(0) {
        let directory =
            Directory { path: first.ancestors().last().unwrap_or(first), paths, start: 1 };
        directory.look(directory.path, each);
    }
}

/// A directory with the paths of the set that are in it or below it.
struct Directory<'a> {
    path: &'a Path,
    /// All begin with the path of the directory. Not empty.
    paths: PathSlice<'a>,
    /// Where the names in the directory begin in each path.
    start: usize,
}

/// The paths of the set that are at one entry of a directory, or below it.
struct Entry<'a> {
    name: &'a OsStr,
    /// The path of the entry, if it is in the set.
    itself: Option<&'a Path>,
    below: Option<Directory<'a>>,
}

impl<'a> Directory<'a> {
    /// Looks in the directory, which may be missing. `above` is the innermost existing directory above it.
    fn look(&self, above: &'a Path, each: &mut impl FnMut(SetPath<'a>)) {
        let Some(status) = fs::metadata(self.path).ok().filter(fs::Metadata::is_dir) else {
            let is_there = self.path.symlink_metadata().is_ok();
            return self.is_missing((!is_there).then_some(above), each);
        };
        let entries: Vec<Entry<'a>> = self.entries().collect();
        let names = self.names(status.size(), entries.len());
        // First all paths in the directory, so that they follow each other.
        for Entry { name, itself, .. } in &entries {
            let Some(path) = *itself else { continue };
            let exists = names.may_have(name) && path.symlink_metadata().is_ok();
            each(SetPath { path, exists, existing: self.path });
        }
        for Entry { name, below, .. } in &entries {
            let Some(below) = below else { continue };
            if names.may_have(name) {
                below.look(self.path, each);
            } else {
                below.is_missing(Some(self.path), each);
            }
        }
    }

    /// Tells that no path exists. Without an existing directory above them, they are below a symlink without a target, or
    /// below a file.
    fn is_missing(&self, above: Option<&'a Path>, each: &mut impl FnMut(SetPath<'a>)) {
        for path in self.paths.iter() {
            let existing = above.unwrap_or_else(|| parent(path));
            each(SetPath { path, exists: false, existing });
        }
    }

    /// The names in the directory, if many are `wanted`. `bytes` is its size.
    fn names(&self, bytes: u64, wanted: usize) -> Names {
        let is_listed =
            wanted > MAX_SINGLE_LOOKUPS && bytes / MAX_BYTES_PER_LOOKUP <= wanted as u64;
        Names(is_listed.then(|| Names::listed(self.path)).flatten())
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let (start, mut rest) = (self.start, self.paths);
        std::iter::from_fn(move || {
            let first = rest.get(0)?;
            let bytes = first.as_os_str().as_bytes();
            let tail = bytes.get(start..)?;
            let length = tail.iter().position(|&byte| byte == b'/').unwrap_or(tail.len());
            let end = start + length;
            let is_at = |path: &Path| {
                let path = path.as_os_str().as_bytes();
                path.starts_with(&bytes[..end]) && path.get(end).is_none_or(|&byte| byte == b'/')
            };
            // Most entries are a single path.
            let is_single = rest.get(1).is_none_or(|next| !is_at(next));
            let count = if is_single { 1 } else { rest.partition_point(is_at) };
            let (paths, after) = rest.split_at(count);
            rest = after;
            let itself = (bytes.len() == end).then_some(first);
            let (_, below) = paths.split_at(usize::from(itself.is_some()));
            let path = Path::new(OsStr::from_bytes(&bytes[..end]));
            let below =
                (!below.is_empty()).then_some(Directory { path, paths: below, start: end + 1 });
            Some(Entry { name: OsStr::from_bytes(&tail[..length]), itself, below })
        })
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The sorted hashes of the names in a directory. `None` if they are not known. Names with the same hash cost a lookup.
struct Names(Option<Vec<u64>>);

impl Names {
    /// `None` if the directory cannot be listed; it may still be searched.
    fn listed(path: &Path) -> Option<Vec<u64>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty()).ok()?;
        let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
        let mut entries = RawDir::new(directory, &mut buffer);
        let mut hashes = Vec::new();
        while let Some(entry) = entries.next() {
            hashes.push(hash(entry.ok()?.file_name().to_bytes()));
        }
        hashes.sort_unstable();
        Some(hashes)
    }

    /// Whether a name may exist.
    fn may_have(&self, name: &OsStr) -> bool {
        let Some(listed) = &self.0 else { return true };
        // Not every file system lists it.
        name == ".." || listed.binary_search(&hash(name.as_bytes())).is_ok()
    }
}

/// FNV-1a of a name in lower case, because some file systems ignore case.
fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
    })
}
