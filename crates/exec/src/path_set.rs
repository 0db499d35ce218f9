//! A large set of paths, most of which do not exist.
//!
//! A sandbox hides more than a thousand paths of secrets, and each command must know which of them exist. One
//! system call for each would take a quarter of the time of a small command. Most are below a few directories, so
//! these are listed instead (`path_set/look.rs`).

mod look;
mod sorted_paths;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::sorted_paths::SortedPaths;
use crate::path_encoding;

/// A set of paths. Cloning is cheap. A message contains only those that exist, and the directories of the others.
#[derive(Debug, Clone, Default)]
pub struct PathSet {
    /// Paths that were added together.
    parts: Vec<Arc<SortedPaths>>,
    /// If the set has only the paths of another one that existed at one moment, as in a message: the directories of the
    /// others.
    incomplete: Option<Vec<PathBuf>>,
}

/// The paths of a set that exist, and the directories of the others.
#[derive(Serialize, Deserialize)]
struct Found {
    #[serde(with = "path_encoding::paths")]
    existing: Vec<PathBuf>,
    #[serde(with = "path_encoding::paths")]
    incomplete: Vec<PathBuf>,
}

/// A path of a set on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetPath<'a> {
    /// The path.
    pub path: &'a Path,
    /// Whether it exists, also as a dangling symlink.
    pub exists: bool,
    /// The directory of the path if that exists, otherwise the innermost existing directory above it. Below a dangling
    /// symlink or a file, the directory of the path.
    pub existing: &'a Path,
}

impl PathSet {
    /// Adds paths. Clones made before stay as they are. A set from a message counts them as existing.
    pub fn add(&mut self, paths: &[PathBuf]) {
        if !paths.is_empty() {
            self.parts.push(Arc::new(SortedPaths::new(paths)));
        }
    }

    /// Adds the paths of these names in a directory. This is quickest if they are sorted as paths.
    pub fn add_in_directory(&mut self, directory: &Path, names: &[&str]) {
        self.parts.push(Arc::new(SortedPaths::in_directory(directory, names)));
    }

    /// Removes a normalized path. Clones made before stay as they are. Returns whether it was there.
    pub fn remove(&mut self, path: &Path) -> bool {
        let with_path = self.parts.iter_mut().filter(|part| part.contains(path));
        with_path.map(|part| Arc::make_mut(part).remove(path)).count() > 0
    }

    /// All paths.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().flat_map(|part| part.all().iter())
    }

    /// Whether a normalized path is in the set.
    pub fn contains(&self, path: &Path) -> bool {
        self.parts.iter().any(|part| part.contains(path))
    }

    /// The paths that are a normalized path or below it.
    pub fn at_or_beneath(&self, path: &Path) -> impl Iterator<Item = &Path> {
        self.parts.iter().flat_map(move |part| part.at_or_beneath(path).iter())
    }

    /// Looks which paths exist now. Paths of the same directory follow each other.
    pub fn look<'a>(&'a self, mut each: impl FnMut(SetPath<'a>)) {
        for part in &self.parts {
            look::look(part.all(), &mut each);
        }
    }

    /// The paths that exist now, also as dangling symlinks, sorted. In a set from a message, those that existed when it was
    /// sent.
    pub fn existing(&self) -> Vec<PathBuf> {
        self.find().existing
    }

    /// The existing directories in which missing paths may appear, or directories above them may.
    pub fn incomplete_directories(&self) -> Vec<PathBuf> {
        self.find().incomplete
    }

    /// The paths that exist now, as a set that is not looked up again.
    pub(crate) fn found(&self) -> PathSet {
        self.find().into()
    }

    fn find(&self) -> Found {
        if let Some(incomplete) = &self.incomplete {
            return Found {
                existing: self.iter().map(Path::to_owned).collect(),
                incomplete: incomplete.clone(),
            };
        }
        let (mut existing, mut incomplete) = (Vec::new(), Vec::new());
        let mut last = Path::new("");
        self.look(|found| {
            if found.exists {
                existing.push(found.path.to_owned());
            } else if last.as_os_str() != found.existing.as_os_str() {
                last = found.existing;
                incomplete.push(last.to_owned());
            }
        });
        for paths in [&mut existing, &mut incomplete] {
            paths.sort();
            paths.dedup();
        }
        Found { existing, incomplete }
    }
}

impl From<Found> for PathSet {
    fn from(Found { existing, incomplete }: Found) -> PathSet {
        PathSet { incomplete: Some(incomplete), ..PathSet::from(existing) }
    }
}

impl From<Vec<PathBuf>> for PathSet {
    fn from(paths: Vec<PathBuf>) -> PathSet {
        let mut set = PathSet::default();
        set.add(&paths);
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
        self.find().serialize(to)
    }
}

impl<'a> Deserialize<'a> for PathSet {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<PathSet, D::Error> {
        Found::deserialize(from).map(PathSet::from)
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
        assert!(wanted.iter().all(|path| set.contains(path)));
        assert!(!set.contains(&at("many")) && !set.contains(&at("many/f3/y")));
        // A file that is made later is found.
        fs::write(at("many/f5"), "").unwrap();
        assert!(set.existing().contains(&at("many/f5")));
        let mut fewer = set.clone();
        assert!(fewer.remove(&at("many/f5")) && !fewer.remove(&at("many/f5")));
        assert!(!fewer.contains(&at("many/f5")) && set.contains(&at("many/f5")));
        assert_eq!(fewer.iter().count(), wanted.len() - 1);
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
                // Paths below a dangling symlink are resolved as a whole, because its target decides.
                let existing =
                    if existing.is_empty() { top.path().to_owned() } else { at(existing) };
                let mut seen = 0;
                set.look(|found| {
                    seen += 1;
                    assert_eq!((found.existing, found.exists), (existing.as_path(), false));
                });
                assert_eq!(seen, count, "{directory}");
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
        assert_eq!(received.incomplete_directories(), [top.path()]);
    }
}
