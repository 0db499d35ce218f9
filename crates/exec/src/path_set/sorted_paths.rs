//! Paths in an order in which those below a directory follow each other.

use std::cmp::Ordering;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Normalized paths, each once. A directory comes before the paths below it, and no other path between them.
#[derive(Debug, Default)]
pub(super) struct SortedPaths(Vec<PathBuf>);

impl SortedPaths {
    pub(super) fn new(mut paths: Vec<PathBuf>) -> SortedPaths {
        for path in &mut paths {
            if !is_normalized(bytes(path)) {
                *path = path.components().collect();
            }
        }
        paths.sort_by(|one, other| compare(bytes(one), bytes(other)));
        paths.dedup();
        SortedPaths(paths)
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.0.binary_search_by(|one| compare(bytes(one), bytes(path))).is_ok()
    }

    pub(super) fn at_or_beneath(&self, path: &Path) -> &[PathBuf] {
        let top = bytes(path);
        let from = self.0.partition_point(|one| compare(bytes(one), top) == Ordering::Less);
        let rest = &self.0[from..];
        let top = top.strip_suffix(b"/").unwrap_or(top);
        let is_beneath = |one: &PathBuf| {
            let rest = bytes(one).strip_prefix(top);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        &rest[..rest.partition_point(is_beneath)]
    }
}

impl Deref for SortedPaths {
    type Target = [PathBuf];

    fn deref(&self) -> &[PathBuf] {
        &self.0
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Whether each component is between two slashes, or after the last.
fn is_normalized(path: &[u8]) -> bool {
    let rest = path.strip_prefix(b"/").unwrap_or(path);
    rest.split(|&byte| byte == b'/').all(|name| !name.is_empty() && name != b".")
}

/// Compares paths by their components. A slash counts as less than any other byte.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    match one.iter().zip(other).find(|(one, other)| one != other) {
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

    #[test]
    fn paths_below_a_directory_follow_it() {
        let given = ["/a.b", "/a/c", "/a", "/a-b/c", "/a//d/", "/a/./c"];
        let sorted = SortedPaths::new(given.map(PathBuf::from).to_vec());
        let expected = ["/a", "/a/c", "/a/d", "/a-b/c", "/a.b"];
        assert_eq!(*sorted, expected.map(PathBuf::from));
        assert_eq!(sorted.at_or_beneath(Path::new("/a")), &sorted[..3]);
        assert_eq!(sorted.at_or_beneath(Path::new("/a/c")), &sorted[1..2]);
        assert_eq!(sorted.at_or_beneath(Path::new("/")), &sorted[..]);
        assert!(sorted.at_or_beneath(Path::new("/b")).is_empty());
        assert!(sorted.contains(Path::new("/a-b/c")) && !sorted.contains(Path::new("/a-b")));
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_components(
            one in "(/|)(([ab.-]{1,3}|)/){0,3}[ab.-]{1,3}",
            other in "(/|)(([ab.-]{1,3}|)/){0,3}[ab.-]{1,3}",
        ) {
            let normalized = |path: &str| Path::new(path).components().collect::<PathBuf>();
            let (one, other) = (normalized(&one), normalized(&other));
            prop_assume!(one.is_absolute() && other.is_absolute());
            prop_assert!(is_normalized(bytes(&one)) || one == Path::new("/"), "{one:?}");
            // The standard library compares `..` as if it were less than all names.
            let has_dots = |path: &Path| path.components().any(|part| part.as_os_str() == "..");
            if !has_dots(&one) && !has_dots(&other) {
                prop_assert_eq!(compare(bytes(&one), bytes(&other)), one.cmp(&other));
            }
        }
    }
}
