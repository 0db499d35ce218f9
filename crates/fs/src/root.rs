//! A directory that the operator opened to the tools.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::{FsError, FsErrorKind};

/// Whether a root may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootMode {
    /// Files may be read.
    ReadOnly,
    /// Files may be read and changed.
    ReadWrite,
}

/// A directory that the operator opened to the tools, held by its handle: whatever is renamed around
/// it later, the root stays the directory that was meant.
#[derive(Debug)]
pub struct Root {
    canonical: PathBuf,
    /// The names of its path: the real ones and, where they differ, those that were given.
    spellings: Vec<Vec<OsString>>,
    handle: OwnedFd,
    mode: RootMode,
}

impl Root {
    /// Opens a directory as a root. The path is the operator's word and is taken as it is.
    pub fn open(given: impl Into<PathBuf>, mode: RootMode) -> Result<Self, FsError> {
        let given = given.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(&given, flags, Mode::empty());
        let handle = rustix::io::retry_on_intr(open)
            .map_err(|errno| FsError::from_errno(&given, "cannot be opened as a root", errno))?;
        let canonical = std::fs::canonicalize(&given).map_err(|error| {
            FsError::new(FsErrorKind::Io, &given, format!("has no real path: {error}"))
        })?;
        let mut spellings = vec![path_names(&canonical)];
        if given.is_absolute() && given != canonical {
            spellings.push(path_names(&given));
        }
        Ok(Root { canonical, spellings, handle, mode })
    }

    /// Its real path.
    pub fn path(&self) -> &Path {
        &self.canonical
    }

    /// Whether it may be written.
    pub fn mode(&self) -> RootMode {
        self.mode
    }

    /// Which directory it is: its device, and its number there.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let status = rustix::fs::fstat(&self.handle).ok()?;
        Some((status.st_dev, status.st_ino))
    }

    /// Whether its path still leads to it.
    pub fn is_in_place(&self) -> bool {
        let now = rustix::fs::stat(&self.canonical);
        let now = now.ok().map(|status| (status.st_dev, status.st_ino));
        now.is_some() && now == self.identity()
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// The names that lead from this root to an absolute path, if the path begins with the root's,
    /// name by name, as given or in its real spelling.
    pub(crate) fn names_beneath<'a>(&self, names: &'a [OsString]) -> Option<&'a [OsString]> {
        self.spellings.iter().find_map(|own| names.strip_prefix(own.as_slice()))
    }
}

/// The real path of something that may not be there yet: that of the nearest directory above that is,
/// and the names that follow. For the operator's words only, never for a caller's.
pub fn real_path(path: &Path) -> PathBuf {
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found =
        path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    match found {
        // Joining nothing would add a slash, which only directories can have.
        Some((above, real)) if above == path => real,
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}

/// The names of a path, without the slash it may begin with.
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
    fn a_real_path_has_no_slash_at_its_end() {
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
}
