//! Paths in an order in which those below a directory follow each other.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Normalized paths, each once. A directory comes before the paths below it, and no other path between them.
///
/// Their bytes are in one buffer. An allocation for each of a thousand paths takes longer than a small call.
#[derive(Debug, Clone, Default)]
pub(super) struct SortedPaths {
    bytes: Vec<u8>,
    /// Where each path is in the buffer.
    places: Vec<Range<usize>>,
}

/// Some of the paths, which follow each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathSlice<'a> {
    bytes: &'a [u8],
    places: &'a [Range<usize>],
}

impl SortedPaths {
    pub(super) fn new(paths: &[PathBuf]) -> SortedPaths {
        let mut made = SortedPaths::default();
        for path in paths {
            if is_normalized(bytes(path)) {
                made.push(&[bytes(path)]);
            } else {
                let normalized: PathBuf = path.components().collect();
                made.push(&[bytes(&normalized)]);
            }
        }
        made.sorted()
    }

    /// The paths of these names in a directory.
    pub(super) fn in_directory(directory: &Path, names: &[&str]) -> SortedPaths {
        let are_sorted = names
            .is_sorted_by(|one, next| compare(one.as_bytes(), next.as_bytes()) == Ordering::Less);
        let is_plain = |name: &&str| !name.starts_with('/') && is_normalized(name.as_bytes());
        if !are_sorted || !names.iter().all(is_plain) || !is_normalized(bytes(directory)) {
            let paths: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
            return SortedPaths::new(&paths);
        }
        let (mut made, directory) = (SortedPaths::default(), bytes(directory));
        let lengths = names.iter().map(|name| directory.len() + 1 + name.len());
        made.bytes.reserve(lengths.sum());
        made.places.reserve(names.len());
        names.iter().for_each(|name| made.push(&[directory, b"/", name.as_bytes()]));
        made
    }

    /// Appends a normalized path that consists of these parts.
    fn push(&mut self, parts: &[&[u8]]) {
        let start = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.places.push(start..self.bytes.len());
    }

    fn sorted(mut self) -> SortedPaths {
        let bytes_of = |place: &Range<usize>| &self.bytes[place.clone()];
        self.places.sort_by(|one, other| compare(bytes_of(one), bytes_of(other)));
        self.places.dedup_by(|one, other| bytes_of(one) == bytes_of(other));
        self
    }

    /// All of them.
    pub(super) fn all(&self) -> PathSlice<'_> {
        PathSlice { bytes: &self.bytes, places: &self.places }
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.find(path).is_ok()
    }

    pub(super) fn remove(&mut self, path: &Path) {
        if let Ok(at) = self.find(path) {
            self.places.remove(at);
        }
    }

    /// Where a path is among them, or would be.
    fn find(&self, path: &Path) -> Result<usize, usize> {
        self.places.binary_search_by(|place| compare(&self.bytes[place.clone()], bytes(path)))
    }

    pub(super) fn at_or_beneath(&self, path: &Path) -> PathSlice<'_> {
        let (Ok(from) | Err(from)) = self.find(path);
        let (_, rest) = self.all().split_at(from);
        let top = bytes(path);
        let top = top.strip_suffix(b"/").unwrap_or(top);
        let is_beneath = |one: &Path| {
            let rest = bytes(one).strip_prefix(top);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        rest.split_at(rest.partition_point(is_beneath)).0
    }
}

impl<'a> PathSlice<'a> {
    pub(super) fn get(self, at: usize) -> Option<&'a Path> {
        self.places.get(at).map(|place| path(&self.bytes[place.clone()]))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'a Path> {
        self.places.iter().map(move |place| path(&self.bytes[place.clone()]))
    }

    pub(super) fn is_empty(self) -> bool {
        self.places.is_empty()
    }

    /// The first `count` of them, and the rest.
    pub(super) fn split_at(self, count: usize) -> (PathSlice<'a>, PathSlice<'a>) {
        let (first, rest) = self.places.split_at(count);
        (PathSlice { places: first, ..self }, PathSlice { places: rest, ..self })
    }

    /// The number of paths at the beginning for which `is_before` is true. It is false for all others.
    pub(super) fn partition_point(self, is_before: impl Fn(&'a Path) -> bool) -> usize {
        self.places.partition_point(|place| is_before(path(&self.bytes[place.clone()])))
    }
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Whether each component is between two slashes, or after the last.
fn is_normalized(path: &[u8]) -> bool {
    let rest = path.strip_prefix(b"/").unwrap_or(path);
    rest.split(|&byte| byte == b'/').all(|name| !name.is_empty() && name != b".")
}

/// The bytes that are compared at once.
const WORD: usize = size_of::<u64>();

/// Compares paths by their components. A slash counts as less than any other byte.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let words = one.chunks_exact(WORD).zip(other.chunks_exact(WORD));
    let same = words.take_while(|(one, other)| one == other).count() * WORD;
    match one[same..].iter().zip(&other[same..]).find(|(one, other)| one != other) {
        Some((b'/', _)) => Ordering::Less,
        Some((_, b'/')) => Ordering::Greater,
        Some((one, other)) => one.cmp(other),
        None => one.len().cmp(&other.len()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(paths: PathSlice<'_>) -> Vec<&str> {
        paths.iter().map(|path| path.to_str().unwrap()).collect()
    }

    #[test]
    fn paths_below_a_directory_follow_it() {
        let given = ["/a.b", "/a/c", "/a", "/a-b/c", "/a//d/", "/a/./c"];
        let sorted = SortedPaths::new(&given.map(PathBuf::from));
        assert_eq!(listed(sorted.all()), ["/a", "/a/c", "/a/d", "/a-b/c", "/a.b"]);
        let beneath = |path: &str| listed(sorted.at_or_beneath(Path::new(path)));
        assert_eq!(beneath("/a"), ["/a", "/a/c", "/a/d"]);
        assert_eq!(beneath("/a/c"), ["/a/c"]);
        assert_eq!(beneath("/").len(), 5);
        assert_eq!(beneath("/b"), [""; 0]);
        assert!(sorted.contains(Path::new("/a-b/c")) && !sorted.contains(Path::new("/a-b")));
    }

    #[test]
    fn names_are_in_their_directory() {
        for (directory, names) in [
            ("/home/me", &[".a/b", ".ssh", "c"][..]),
            ("/home/me/", &[".a/b", ".ssh", "c"]),
            ("/home/me", &["/home/me/.ssh", ".ssh", ".a/b", "./c", ".ssh"]),
        ] {
            let made = SortedPaths::in_directory(Path::new(directory), names);
            assert_eq!(listed(made.all()), ["/home/me/.a/b", "/home/me/.ssh", "/home/me/c"]);
        }
        assert_eq!(listed(SortedPaths::in_directory(Path::new("/"), &["a"]).all()), ["/a"]);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_components(
            one in "(/|)(([ab.-]{1,3}|)/){0,5}[ab.-]{1,3}",
            other in "(/|)(([ab.-]{1,3}|)/){0,5}[ab.-]{1,3}",
        ) {
            let normalized = |path: &str| Path::new(path).components().collect::<PathBuf>();
            let (one, other) = (normalized(&one), normalized(&other));
            prop_assume!(one.is_absolute() && other.is_absolute());
            prop_assert!(is_normalized(bytes(&one)) || one == Path::new("/"), "{one:?}");
            // The standard library compares `..` as if it were less than all names.
            let has_dots = |path: &Path| path.components().any(|part| part.as_os_str() == "..");
            if !has_dots(&one) && !has_dots(&other) {
                prop_assert_eq!(compare(bytes(&one), bytes(&other)), one.cmp(&other));
                // With the same beginning, which is longer than a word.
                let long = [&one, &other].map(|path| [b"/directory", bytes(path)].concat());
                prop_assert_eq!(compare(&long[0], &long[1]), one.cmp(&other));
            }
        }
    }
}
