//! Real paths of files that may not exist yet.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// More symlinks than the kernel follows.
const MAX_SYMLINKS: usize = 40;

/// The real path of a file that may not exist yet: that of the nearest existing directory above, and the
/// remaining components. Only for paths from the operator, never from a caller.
pub fn real_path(path: &Path) -> PathBuf {
    RealPaths::default().resolve(path)
}

/// Resolves many paths. Each component is looked up once, and nothing is looked up beneath a missing directory.
#[derive(Debug, Default)]
pub struct RealPaths {
    known: HashMap<OsString, Resolved>,
}

#[derive(Debug, Clone)]
struct Resolved {
    path: PathBuf,
    /// Whether it exists and can be reached.
    exists: bool,
}

impl RealPaths {
    /// The same as [`real_path`].
    pub fn resolve(&mut self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            return self.find(path, MAX_SYMLINKS).path;
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.find(&path, MAX_SYMLINKS).path
    }

    fn find(&mut self, path: &Path, symlinks_left: usize) -> Resolved {
        if let Some(known) = self.known.get(path.as_os_str()) {
            return known.clone();
        }
        let found = self.look_up(path, symlinks_left);
        self.known.insert(path.into(), found.clone());
        found
    }

    fn look_up(&mut self, path: &Path, symlinks_left: usize) -> Resolved {
        let (Some(parent), Some(last)) = (path.parent(), path.components().next_back()) else {
            return Resolved { path: path.to_owned(), exists: true };
        };
        let above = self.find(parent, symlinks_left);
        if above.exists && last == Component::ParentDir {
            let parent = above.path.parent().unwrap_or(&above.path).to_owned();
            return Resolved { path: parent, exists: true };
        }
        let here = above.path.join(last);
        if !above.exists {
            return Resolved { path: here, exists: false };
        }
        match rustix::fs::readlink(&here, Vec::new()) {
            Ok(target) => {
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                let found = symlinks_left
                    .checked_sub(1)
                    .map(|left| self.find(&above.path.join(target), left));
                let found = found.filter(|found| found.exists);
                // The name of a dangling symlink stays.
                found.unwrap_or(Resolved { path: here, exists: false })
            }
            // It is no symlink.
            Err(rustix::io::Errno::INVAL) => Resolved { path: here, exists: true },
            Err(_) => Resolved { path: here, exists: false },
        }
    }
}

/// The symlinks on the way to a path, each with the resolved path of its directory. To replace one of them is to
/// replace the file.
pub fn symlinks_on_the_way(path: &Path) -> Vec<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest: Vec<OsString> = path_names(&path).into_iter().rev().collect();
    let (mut here, mut found) = (PathBuf::from("/"), Vec::new());
    while let Some(name) = rest.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        here.push(name);
        let Ok(target) = std::fs::read_link(&here) else { continue };
        if found.len() == MAX_SYMLINKS {
            break;
        }
        found.push(here.clone());
        rest.extend(path_names(&target).into_iter().rev());
        if target.is_absolute() {
            here = PathBuf::from("/");
        } else {
            here.pop();
        }
    }
    found
}

/// The components of a path, without a leading slash.
pub(crate) fn path_names(path: &Path) -> Vec<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlinks_on_the_way_are_found() {
        use std::os::unix::fs::symlink;
        let top = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(top.path()).unwrap();
        std::fs::create_dir_all(real.join("a/b")).unwrap();
        symlink("../two", real.join("a/one")).unwrap();
        symlink(real.join("a/b"), real.join("two")).unwrap();
        symlink("loop", real.join("loop")).unwrap();
        let found = symlinks_on_the_way(&real.join("a/one/new/file"));
        assert_eq!(found, [real.join("a/one"), real.join("two")]);
        assert!(symlinks_on_the_way(&real.join("a/b/file")).is_empty());
        assert_eq!(symlinks_on_the_way(&real.join("loop/x")).len(), MAX_SYMLINKS);
    }

    #[test]
    fn a_real_path_has_no_trailing_slash() {
        let top = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(top.path()).unwrap();
        std::fs::write(top.path().join("file"), "").unwrap();
        for (given, expected) in [("file", "file"), ("new/er", "new/er"), (".", "")] {
            let found = real_path(&top.path().join(given)).into_os_string();
            let expected = match expected {
                "" => real.clone(),
                name => real.join(name),
            };
            assert_eq!(found, expected.into_os_string(), "{given}");
        }
    }

    #[test]
    fn real_paths_agree_with_the_kernel() {
        use std::os::unix::fs::symlink;
        let top = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(top.path()).unwrap();
        std::fs::create_dir_all(real.join("a/b/c")).unwrap();
        std::fs::write(real.join("file"), "").unwrap();
        symlink("../a/b", real.join("a/up")).unwrap();
        symlink(real.join("a"), real.join("absolute")).unwrap();
        symlink("missing", real.join("dangling")).unwrap();
        symlink("loop", real.join("loop")).unwrap();
        symlink("absolute/up", real.join("chain")).unwrap();
        let mut many = RealPaths::default();
        for given in [
            "a/b",
            "a/up",
            "a/up/c",
            "absolute/up/c",
            "chain/c",
            "a/b/..",
            "a/up/../b",
            "chain/../..",
            "file",
            "a//b/./c",
        ] {
            let path = top.path().join(given);
            let expected = std::fs::canonicalize(&path).unwrap();
            assert_eq!(many.resolve(&path), expected, "{given}");
            assert_eq!(real_path(&path), expected, "{given}");
        }
        // The rest of a path that does not exist stays.
        for (given, expected) in [
            ("chain/new/er", "a/b/new/er"),
            ("dangling", "dangling"),
            ("dangling/x", "dangling/x"),
            ("loop/x", "loop/x"),
            ("file/x", "file/x"),
            ("new/../a", "new/../a"),
        ] {
            assert_eq!(many.resolve(&top.path().join(given)), real.join(expected), "{given}");
        }
    }
}
