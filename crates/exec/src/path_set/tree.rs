//! Paths as a tree of directories. Looking for them starts at the top and stops at each missing directory, so most
//! missing paths cost nothing.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{FoundPaths, SetDirectory};

/// With more entries than this to look for in a directory, the directory is listed.
const MAX_SINGLE_LOOKUPS: usize = 4;

/// A directory with more bytes than this for each entry to look for has so many entries that single lookups are quicker.
/// File systems count differently; this affects only the speed.
const MAX_BYTES_PER_LOOKUP: u64 = 512;

#[derive(Debug)]
pub(super) struct PathTree {
    directories: HashMap<PathBuf, Directory>,
    /// Directories without one above them.
    tops: Vec<PathBuf>,
}

#[derive(Debug, Default)]
struct Directory {
    /// Paths of the set in it.
    names: Vec<OsString>,
    /// Directories in it.
    directories: Vec<PathBuf>,
}

impl PathTree {
    pub(super) fn of(paths: &[PathBuf]) -> PathTree {
        let mut names: HashMap<&OsStr, Vec<OsString>> = HashMap::new();
        for path in paths {
            // The root directory has no name. Nothing can hide it.
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                names.entry(parent.as_os_str()).or_default().push(name.to_owned());
            }
        }
        let mut tree = PathTree { directories: HashMap::new(), tops: Vec::new() };
        for (directory, names) in names {
            tree.directory(Path::new(directory)).names = names;
        }
        tree
    }

    /// A directory. Adds it to the directories above it if it is new.
    fn directory(&mut self, path: &Path) -> &mut Directory {
        if !self.directories.contains_key(path) {
            match path.parent() {
                Some(parent) => self.directory(parent).directories.push(path.to_owned()),
                None => self.tops.push(path.to_owned()),
            }
        }
        self.directories.entry(path.to_owned()).or_default()
    }

    /// Looks which paths exist.
    pub(super) fn look<'a>(&'a self, found: &mut FoundPaths<'a>) {
        for top in &self.tops {
            self.look_in(top, top, found);
        }
    }

    /// Looks in a directory that may be missing. `above` is the innermost existing directory above it.
    fn look_in<'a>(&'a self, path: &'a Path, above: &'a Path, found: &mut FoundPaths<'a>) {
        let Some(directory) = self.directories.get(path) else { return };
        let Some(status) = fs::metadata(path).ok().filter(fs::Metadata::is_dir) else {
            let is_there = path.symlink_metadata().is_ok();
            return self.add_missing(path, (!is_there).then_some(above), found);
        };
        directory.add_to(found, path, path);
        let entries = directory.entries(path, status.size());
        let paths = directory.names.iter().filter(|name| entries.may_have(name));
        let paths = paths.map(|name| path.join(name));
        found.existing.extend(paths.filter(|path| path.symlink_metadata().is_ok()));
        for inner in &directory.directories {
            if inner.file_name().is_none_or(|name| entries.may_have(name)) {
                self.look_in(inner, path, found);
            } else {
                self.add_missing(inner, Some(path), found);
            }
        }
    }

    /// Adds a directory and those below it, of which no path exists. Without an existing directory above them, they
    /// are below a symlink without a target, or below a file.
    fn add_missing<'a>(
        &'a self,
        path: &'a Path,
        above: Option<&'a Path>,
        found: &mut FoundPaths<'a>,
    ) {
        let Some(directory) = self.directories.get(path) else { return };
        directory.add_to(found, path, above.unwrap_or(path));
        for inner in &directory.directories {
            self.add_missing(inner, above, found);
        }
    }
}

impl Directory {
    fn add_to<'a>(&'a self, found: &mut FoundPaths<'a>, path: &'a Path, existing: &'a Path) {
        if !self.names.is_empty() {
            found.directories.push(SetDirectory { path, existing, names: &self.names });
        }
    }

    fn entries(&self, path: &Path, bytes: u64) -> Entries {
        let wanted = self.names.len() + self.directories.len();
        let is_listed =
            wanted > MAX_SINGLE_LOOKUPS && bytes / MAX_BYTES_PER_LOOKUP <= wanted as u64;
        Entries(is_listed.then(|| Entries::listed(path)).flatten())
    }
}

/// The names in a directory, in lower case, because some file systems ignore case. `None` if they are not known.
struct Entries(Option<HashSet<OsString>>);

impl Entries {
    /// `None` if the directory cannot be listed; it may still be searched.
    fn listed(path: &Path) -> Option<HashSet<OsString>> {
        let entries = fs::read_dir(path).ok()?;
        entries.map(|entry| Some(entry.ok()?.file_name().to_ascii_lowercase())).collect()
    }

    /// Whether a name may exist.
    fn may_have(&self, name: &OsStr) -> bool {
        self.0.as_ref().is_none_or(|listed| listed.contains(&name.to_ascii_lowercase()))
    }
}
