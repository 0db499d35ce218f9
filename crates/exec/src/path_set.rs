//! A large set of paths, most of which do not exist.
//!
//! A sandbox hides more than a thousand paths of secrets, and each command must know which of them exist. One
//! system call for each would take a quarter of the time of a small command. Many of them are in the same few
//! directories, so these are listed instead.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::path_encoding;

/// With more names than this in a directory, the directory is listed.
const MAX_SINGLE_LOOKUPS: usize = 4;

/// A directory of this many bytes has so many entries that single lookups are quicker. File systems count
/// differently; this affects only the speed.
const MAX_LISTED_BYTES: u64 = 64 << 10;

/// A set of paths. Cloning is cheap. A message contains only those that exist.
#[derive(Debug, Clone, Default)]
pub struct PathSet {
    parts: Vec<Arc<Part>>,
}

/// Paths that were added together.
#[derive(Debug)]
struct Part {
    paths: Vec<PathBuf>,
    /// Their names, by directory. Made when it is needed first.
    directories: OnceLock<Vec<Directory>>,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    names: Vec<OsString>,
}

impl PathSet {
    /// Adds paths. Clones made before stay as they are.
    pub fn add(&mut self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.parts.push(Arc::new(Part { paths, directories: OnceLock::new() }));
        }
    }

    /// All paths.
    pub fn iter(&self) -> impl Iterator<Item = &PathBuf> {
        self.parts.iter().flat_map(|part| &part.paths)
    }

    /// The paths by their directories. A directory may occur more than once.
    pub fn directories(&self) -> impl Iterator<Item = (&Path, &[OsString])> {
        let directories = self.parts.iter().flat_map(|part| part.directories());
        directories.map(|directory| (directory.path.as_path(), directory.names.as_slice()))
    }

    /// The paths that exist now, also as dangling symlinks, sorted.
    pub fn existing(&self) -> Vec<PathBuf> {
        let directories = self.parts.iter().flat_map(|part| part.directories());
        let mut found: Vec<PathBuf> = directories.flat_map(Directory::existing).collect();
        found.sort();
        found
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
    fn directories(&self) -> &[Directory] {
        self.directories.get_or_init(|| {
            let mut directories: HashMap<&OsStr, Vec<OsString>> = HashMap::new();
            for path in &self.paths {
                // The root directory has no name. Nothing can hide it.
                let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                    continue;
                };
                directories.entry(parent.as_os_str()).or_default().push(name.to_owned());
            }
            let directory = |(path, names)| Directory { path: PathBuf::from(path), names };
            directories.into_iter().map(directory).collect()
        })
    }
}

impl Directory {
    /// The paths that exist.
    fn existing(&self) -> Vec<PathBuf> {
        let status = fs::metadata(&self.path).ok().filter(fs::Metadata::is_dir);
        let Some(status) = status else { return Vec::new() };
        let is_small = status.size() <= MAX_LISTED_BYTES;
        let listed = (is_small && self.names.len() > MAX_SINGLE_LOOKUPS).then(|| self.listed());
        let listed = listed.flatten();
        // Some file systems ignore case, so the list only rules names out.
        let may_exist = |name: &&OsString| {
            listed.as_ref().is_none_or(|listed| listed.contains(&name.to_ascii_lowercase()))
        };
        let paths = self.names.iter().filter(may_exist).map(|name| self.path.join(name));
        paths.filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// The names in the directory, in lower case. `None` if it cannot be listed; it may still be searched.
    fn listed(&self) -> Option<HashSet<OsString>> {
        let entries = fs::read_dir(&self.path).ok()?;
        entries.map(|entry| Some(entry.ok()?.file_name().to_ascii_lowercase())).collect()
    }
}

#[cfg(test)]
mod tests {
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
    fn a_message_has_only_existing_paths() {
        let top = tempfile::tempdir().unwrap();
        let set = PathSet::from(vec![top.path().to_owned(), top.path().join("missing")]);
        let sent = postcard::to_stdvec(&set).unwrap();
        let received: PathSet = postcard::from_bytes(&sent).unwrap();
        assert_eq!(received, PathSet::from(vec![top.path().to_owned()]));
    }
}
