//! A large set of paths, most of which do not exist.
//!
//! A sandbox hides more than a thousand paths of secrets, and each command must know which of them exist. One
//! system call for each would take a quarter of the time of a small command. Most are below a few directories, so
//! these are listed instead (`path_set/tree.rs`).

mod tree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::tree::PathTree;
use crate::path_encoding;

/// A set of paths. Cloning is cheap. A message contains only those that exist.
#[derive(Debug, Clone, Default)]
pub struct PathSet {
    parts: Vec<Arc<Part>>,
}

/// Paths that were added together.
#[derive(Debug)]
struct Part {
    paths: Vec<PathBuf>,
    /// Made when it is needed first.
    tree: OnceLock<PathTree>,
}

/// The paths of a set on this machine.
#[derive(Debug, Default)]
pub struct FoundPaths<'a> {
    /// The paths that exist, also as dangling symlinks, sorted.
    pub existing: Vec<PathBuf>,
    /// The directories of all paths, existing or not. A directory may occur more than once.
    pub directories: Vec<SetDirectory<'a>>,
}

/// A directory with paths of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetDirectory<'a> {
    /// The directory.
    pub path: &'a Path,
    /// The last part of the path that exists: the directory itself, or the innermost directory above it.
    pub existing: &'a Path,
    /// The names of the set's paths in the directory.
    pub names: &'a [OsString],
}

impl PathSet {
    /// Adds paths. Clones made before stay as they are.
    pub fn add(&mut self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.parts.push(Arc::new(Part { paths, tree: OnceLock::new() }));
        }
    }

    /// All paths.
    pub fn iter(&self) -> impl Iterator<Item = &PathBuf> {
        self.parts.iter().flat_map(|part| &part.paths)
    }

    /// Looks which paths exist now.
    pub fn look(&self) -> FoundPaths<'_> {
        let mut found = FoundPaths::default();
        for part in &self.parts {
            part.tree().look(&mut found);
        }
        found.existing.sort();
        found
    }

    /// The paths that exist now, also as dangling symlinks, sorted.
    pub fn existing(&self) -> Vec<PathBuf> {
        self.look().existing
    }
}

impl From<Vec<PathBuf>> for PathSet {
    fn from(paths: Vec<PathBuf>) -> PathSet {
        let mut set = PathSet::default();
        set.add(paths);
        set
    }
}

impl PartialEq for PathSet {
    fn eq(&self, other: &PathSet) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for PathSet {}

impl Serialize for PathSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        path_encoding::paths::serialize(&self.existing(), to)
    }
}

impl<'a> Deserialize<'a> for PathSet {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<PathSet, D::Error> {
        path_encoding::paths::deserialize(from).map(PathSet::from)
    }
}

impl Part {
    fn tree(&self) -> &PathTree {
        self.tree.get_or_init(|| PathTree::of(&self.paths))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        paths.sort();
        paths
    }

    #[test]
    fn the_existing_paths_are_found() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("real/inner")).unwrap();
        fs::create_dir_all(at("many")).unwrap();
        symlink("real", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let mut wanted: Vec<PathBuf> =
            (0..50).map(|number| at(&format!("many/f{number}"))).collect();
        for number in [3, 17, 49] {
            fs::write(at(&format!("many/f{number}")), "").unwrap();
        }
        fs::write(at("real/inner/secret"), "").unwrap();
        for name in [
            "real",
            "real/inner/secret",
            "link/inner/secret",
            "dangling",
            "dangling/x",
            "many/f3/x",
            "missing/a",
            "missing/b",
            "many/../real/inner",
        ] {
            wanted.push(at(name));
        }
        let expected: Vec<PathBuf> =
            wanted.iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
        assert_eq!(expected.len(), 8);
        let set = PathSet::from(wanted.clone());
        assert_eq!(sorted(set.existing()), sorted(expected));
        assert_eq!(set.iter().count(), wanted.len());
        // A file that is made later is found.
        fs::write(at("many/f5"), "").unwrap();
        assert!(set.existing().contains(&at("many/f5")));
    }

    #[test]
    fn a_directory_that_may_not_be_listed_is_searched() {
        use std::os::unix::fs::PermissionsExt as _;
        let top = tempfile::tempdir().unwrap();
        let closed = top.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("f7"), "").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o300)).unwrap();
        let set = PathSet::from((0..9).map(|n| closed.join(format!("f{n}"))).collect::<Vec<_>>());
        let found = set.existing();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(found, [closed.join("f7")]);
    }

    #[test]
    fn missing_directories_name_the_existing_one_above_them() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("real/inner")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        for (directory, existing) in [
            ("real/inner", "real/inner"),
            ("real/missing", "real"),
            ("real/missing/deep", "real"),
            ("missing/deep", ""),
            ("dangling", "dangling"),
            ("dangling/deep", "dangling/deep"),
        ] {
            for count in [1, 20] {
                let paths: Vec<PathBuf> =
                    (0..count).map(|n| at(directory).join(format!("f{n}"))).collect();
                let set = PathSet::from(paths);
                let [found] = set.look().directories[..] else { panic!("{directory}") };
                assert_eq!((found.path, found.names.len()), (at(directory).as_path(), count));
                // Paths below a dangling symlink are resolved as a whole, because its target decides.
                let existing =
                    if existing.is_empty() { top.path().to_owned() } else { at(existing) };
                assert_eq!(found.existing, existing, "{directory}");
            }
        }
    }

    #[test]
    fn a_message_has_only_existing_paths() {
        let top = tempfile::tempdir().unwrap();
        let set = PathSet::from(vec![top.path().to_owned(), top.path().join("missing")]);
        let sent = postcard::to_stdvec(&set).unwrap();
        let received: PathSet = postcard::from_bytes(&sent).unwrap();
        assert_eq!(received, PathSet::from(vec![top.path().to_owned()]));
    }
}
