//! The paths around hidden ones.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// More rules than the hidden paths of any home need. Beyond this limit, the surroundings of a hidden path
/// become unreadable with it.
const MAX_RULES: usize = 4096;

/// A larger directory stays readable as a whole if no hidden path is in it: a rule for each entry would take too long.
const MAX_ENTRIES: usize = 1000;

/// The files and directories around hidden paths.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Together, they contain everything except hidden paths.
    pub(super) paths: Vec<PathBuf>,
    /// The directories that were listed to find them, each as it was before.
    pub(super) listed: Vec<(PathBuf, Version)>,
}

/// A version of a directory. Entries that are added, removed or renamed change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    file: (u64, u64),
    /// The time of the last change, in nanoseconds.
    pub(super) changed: i128,
}

impl Version {
    /// The version of a directory now.
    pub(super) fn of(directory: &Path) -> Option<Version> {
        let about = fs::symlink_metadata(directory).ok()?;
        let changed = i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec());
        Some(Version { file: (about.dev(), about.ino()), changed })
    }
}

/// All paths except hidden ones. Rules only allow and never deny, so the siblings of each directory on the
/// way to a hidden path are listed one by one, and the entries of the directories in which one may appear.
pub(super) fn paths_around(hidden: &[PathBuf], incomplete: &[PathBuf]) -> Surroundings {
    let (above_hidden, above_incomplete) = (at_or_above(hidden), at_or_above(incomplete));
    // All are normalized. Comparing paths by their components would take most of the time of a small command.
    let hidden: HashSet<&OsStr> = hidden.iter().map(|path| path.as_os_str()).collect();
    let (mut allowed, mut listed) = (Vec::new(), Vec::new());
    let mut open = vec![PathBuf::from("/")];
    while let Some(path) = open.pop() {
        if hidden.contains(path.as_os_str()) {
            continue;
        }
        let holds_hidden = above_hidden.contains(path.as_os_str());
        if !holds_hidden && !above_incomplete.contains(path.as_os_str()) {
            allowed.push(path);
        } else if allowed.len() + open.len() < MAX_RULES {
            // A directory that is gone has no entries.
            let Some(version) = Version::of(&path) else { continue };
            let mut entries = entries(&path);
            listed.push((path.clone(), version));
            if holds_hidden || entries.len() <= MAX_ENTRIES {
                open.append(&mut entries);
            } else {
                allowed.push(path);
            }
        }
    }
    Surroundings { paths: allowed, listed }
}

/// The paths, and all directories above them.
fn at_or_above(paths: &[PathBuf]) -> HashSet<&OsStr> {
    let mut all = HashSet::new();
    for path in paths {
        for above in path.ancestors() {
            // Its own directories are there already.
            if !all.insert(above.as_os_str()) {
                break;
            }
        }
    }
    all
}

/// The entries of a directory, without symlinks: the target of a symlink is allowed or hidden by its own path.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_symlink = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    entries.filter(|entry| !is_symlink(entry)).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_around_cover_everything_except_hidden_paths() {
        let top = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(top.path()).unwrap();
        for name in ["a/secret/x", "a/open", "b", "d/e"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        fs::write(top.join("c"), "").unwrap();
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        let around = paths_around(&[top.join("a/secret")], &[top.join("d")]);
        for path in around.paths {
            match path.strip_prefix(&top) {
                Ok(path) => here.push(path.to_owned()),
                Err(_) => elsewhere.push(path),
            }
        }
        here.sort();
        assert_eq!(here, ["a/open", "b", "c", "d/e"].map(PathBuf::from));
        assert!(elsewhere.contains(&"/etc".into()) && !elsewhere.contains(&"/".into()));
        let listed = |path: &Path| around.listed.iter().any(|(one, _)| one == path);
        assert!(listed(&top) && listed(&top.join("a")) && listed(Path::new("/")));
        assert!(!listed(&top.join("b")));
        assert_eq!(paths_around(&[], &[]).paths, [PathBuf::from("/")]);
    }
}
